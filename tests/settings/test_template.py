"""The file written by `parquetry init` is valid as written and with any of its lines uncommented."""

import re
import tomllib

import pytest

from parquetry.settings.sections import Settings, load_settings
from parquetry.settings.template import outline, template

COMMENTED = re.compile(r"^#(?=[a-z_]+ = |\[\[)", re.MULTILINE)
"""comment mark before a key, or before the head of a table that is only shown"""

SHOWN_ONLY = {"namespace", "agent"}


def _load(text, folder):
    file = folder / "parquetry.toml"
    file.write_text(text, "utf-8")
    return load_settings(file)


def _lines():
    """Yield (section, key, line number) of every commented key."""
    section = ""
    for number, line in enumerate(template().splitlines()):
        if line.lstrip("#").startswith("["):
            section = line.strip("#[]")
        elif COMMENTED.match(line):
            yield pytest.param(number, section, line[1:].split(" = ")[0], id=f"{section}.{line[1:].split(' = ')[0]}")


def test_template_as_written_has_all_defaults_and_one_source(tmp_path):
    settings = _load(template(), tmp_path)
    assert [(source.name, source.uri) for source in settings.source] == [("documents", str(tmp_path / "documents"))]
    assert settings.model_dump(exclude={"source", "corpus"}) == Settings().model_dump(exclude={"source", "corpus"})
    assert settings.corpus.root == str(tmp_path / "corpus")


def test_every_key_of_the_models_stands_in_the_template_once():
    shown = [f"{section.name}.{key.name}" for section in outline() for key in section.keys]
    commented = [parameters.id for parameters in _lines()]
    assert sorted([*commented, "source.name", "source.uri"]) == sorted(shown)


@pytest.mark.parametrize(("number", "section", "key"), [line for line in _lines() if line.values[1] not in SHOWN_ONLY])
def test_one_line_uncommented_sets_that_key(number, section, key, tmp_path):
    lines = template().splitlines()
    lines[number] = lines[number].removeprefix("#")
    settings = _load("\n".join(lines), tmp_path)
    table = getattr(settings, section)
    changed = table[0] if section == "source" else table
    assert changed.model_fields_set >= {key}


def test_table_that_is_only_shown_is_valid_once_all_of_it_is_uncommented(tmp_path):
    block = next(block for block in template().split("\n\n") if "#[[namespace]]" in block)
    settings = _load(template().replace(block, COMMENTED.sub("", block)), tmp_path)
    assert [(each.name, each.embedder) for each in settings.namespace] == [
        ("contracts", f"onnx:{tmp_path}/models/e5-small")
    ]


def test_agent_that_is_only_shown_is_valid_once_all_of_it_is_uncommented(tmp_path):
    block = next(block for block in template().split("\n\n") if "#[[agent]]" in block)
    settings = _load(template().replace(block, COMMENTED.sub("", block)), tmp_path)
    assert [(each.name, each.model) for each in settings.agent] == [("hr-helper", "llama3.2")]


def test_everything_uncommented_is_valid(tmp_path):
    settings = _load(COMMENTED.sub("", template()), tmp_path)
    assert settings.chunking.preset == "tokens-512"
    assert settings.chunking.size == 1200, "explicit keys win over the preset"


def test_a_default_in_the_template_is_the_default():
    """Uncommenting a line that shows a default changes nothing."""
    values = tomllib.loads(COMMENTED.sub("", template()))
    defaults = Settings().model_dump()
    checked = 0
    for section in outline():
        for key in section.keys:
            if key.default is not None and key.default == key.example and not section.repeated:
                assert values[section.name][key.name] == defaults[section.name][key.name]
                checked += 1
    assert checked > 25
