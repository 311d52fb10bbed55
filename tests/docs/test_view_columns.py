"""The pages describe the columns that the views have."""

import re

import pytest

from parquetry.storage.connect import connect
from tests.documentation import text_of

pytestmark = pytest.mark.slow


def test_views_have_the_columns_that_the_guide_describes(original):
    """Their order may differ; several columns may share a row of the table."""
    corpus = connect(str(original.folder / ".demo" / "corpus"))
    guide = text_of("docs/analysts.md")
    described = {}
    for view, section in re.findall(r"^### `(\w+)`\n(.*?)(?=^#)", guide, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        described[view] = sorted(name for row in rows for name in re.findall(r"`(\w+)`", row))
    assert set(described) == {
        "documents", "chunks", "texts", "notes", "quality", "pages", "runs", "failures", "searches",
    }  # fmt: skip
    for view, columns in described.items():
        assert columns == sorted(corpus.sql(f"FROM {view}").columns), view
    assert corpus.sql("FROM document_history").columns == corpus.sql("FROM documents").columns


def test_views_of_entries_have_the_columns_that_their_page_describes(original):
    corpus = connect(str(original.folder / ".demo" / "corpus"))
    described = {}
    page = text_of("docs/entries.md")
    for view, section in re.findall(r"^### `(\w+)`\n(.*?)(?=^#|^Why|\Z)", page, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        described[view] = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    (current_only,) = re.findall(r"all columns of `entries` but `(\w+)`", page)
    described["entry_history"] += [name for name in described["entries"] if name != current_only]
    assert set(described) == {"entries", "entry_history", "decisions", "sessions"}
    for view, columns in described.items():
        assert sorted(columns) == sorted(corpus.sql(f"FROM {view}").columns), view
