"""The settings reference agrees with the models."""

import runpy
import tomllib
from pathlib import Path

import pytest

from parquetry.settings.sections import Settings, parse_settings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator():
    return runpy.run_path(str(DOCS / "generate_settings.py"))


def test_reference_is_up_to_date(generator):
    """Commit a changed model together with the page: run `python docs/generate_settings.py`."""
    assert (DOCS / "settings.md").read_text("utf-8") == generator["render"]()


def test_every_key_has_a_row_with_its_meaning(generator):
    """Keys are counted in the models and not in the outline from which the page is generated."""
    annotations = [field.annotation for field in Settings.model_fields.values()]
    models = [getattr(annotation, "__args__", [annotation])[0] for annotation in annotations]
    keys = [(name, field.description) for model in models for name, field in model.model_fields.items()]
    rows = [line for line in generator["render"]().splitlines() if line.startswith("| `")]
    assert len(rows) == len(keys)
    for row, (name, description) in zip(rows, keys, strict=True):
        assert row.startswith(f"| `{name}` |")
        assert description.strip()
        assert description.replace("|", "\\|") in row


def test_example_file_is_valid(generator):
    settings = parse_settings(tomllib.loads(generator["EXAMPLE"]), "example")
    assert [source.name for source in settings.source] == ["handbook", "contracts"]
    assert [settings.embedder_of(name) for name in ("default", "legal")] == [
        "openai:text-embedding-3-small",
        "onnx:models/e5-small",
    ]
