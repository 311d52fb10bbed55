"""The page on web sources agrees with the code."""

import re
import tomllib

import pytest

from parquetry.errors import SettingsError
from parquetry.settings.sections import parse_settings
from parquetry.sources.registry import open_source, scopes_of
from parquetry.sources.web.source import WebOptions, WebSource
from tests.documentation import blocks_of, text_of

PAGE = "docs/sources-web.md"


def test_every_option_is_described_with_its_default():
    described = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", text_of(PAGE), re.MULTILINE))
    fields = WebOptions.model_fields
    assert set(described) == set(fields)
    for name, field in fields.items():
        default = str(field.default).lower()
        shown = {"()": "none", "none": "none", "67108864": "64 MiB", "1.0": "`1`"}.get(default, f"`{default}`")
        assert described[name] == ("by content" if name == "kind" else shown), name


def test_the_largest_number_of_every_option_is_told():
    told = dict(re.findall(r"^\| `(\w+)` \|.*; up to ([\w, ]+?) \|$", text_of(PAGE), re.MULTILINE))
    most = {
        name: next(each.le for each in field.metadata if hasattr(each, "le"))
        for name, field in WebOptions.model_fields.items()
        if any(hasattr(each, "le") for each in field.metadata)
    }
    assert {name: 1024**4 if text == "1 TiB" else int(text.replace(",", "")) for name, text in told.items()} == most


@pytest.mark.parametrize(
    "block", [each for each in blocks_of(PAGE) if each.language == "toml"], ids=lambda each: each.name
)
def test_settings_on_the_page_open_a_source(block, tmp_path):
    settings = parse_settings(tomllib.loads(block.code), PAGE)
    (scope,) = scopes_of(settings, ())
    assert isinstance(open_source(scope, str(tmp_path)), WebSource)


def test_message_of_a_refusal_is_as_the_page_shows_it(tmp_path):
    (shown,) = (block.code.strip() for block in blocks_of(PAGE) if block.language == "text")
    (scope,) = scopes_of(parse_settings({}, PAGE), ("http://127.0.0.1:8000/",))
    with pytest.raises(SettingsError) as raised:
        open_source(scope, str(tmp_path))
    assert shown == f"parquetry: {raised.value}"
