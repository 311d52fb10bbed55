"""The page on S3 sources agrees with the code."""

import re
import tomllib

from parquetry.settings.sections import parse_settings
from parquetry.sources.registry import open_source, scopes_of
from parquetry.sources.s3.access import KEYS
from parquetry.sources.s3.source import S3Options
from tests.documentation import blocks_of, text_of

PAGE = "docs/sources-s3.md"


def _first_column(heading):
    table = text_of(PAGE).partition(heading)[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)`", table, re.MULTILINE)


def test_every_option_is_described():
    assert _first_column("| option | default | meaning |") == list(S3Options.model_fields)


def test_every_tag_that_says_who_may_see_an_object_is_described():
    assert _first_column("| name | value |") == list(KEYS)


def test_settings_on_the_page_open_a_source(tmp_path, monkeypatch):
    blocks = [each for each in blocks_of(PAGE) if each.language == "toml"]
    assert len(blocks) == 2
    for block in blocks:
        for name in re.findall(r"env:(\w+)", block.code):
            monkeypatch.setenv(name, "planted-1234567")
        (scope,) = scopes_of(parse_settings(tomllib.loads(block.code), PAGE), ())
        assert open_source(scope, str(tmp_path)).scan
