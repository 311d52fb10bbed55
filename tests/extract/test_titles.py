"""Declared titles that name a document, and those that do not."""

import pytest

from parquetry.extract.titles import useful_title


@pytest.mark.parametrize(
    "title",
    [
        None,
        "",
        " \0 ",
        "Untitled",
        "untitled-3 copy",
        "(anonymous)",
        "Document 2",
        "- no title specified",
        "Document 1 sans titre",
        "Sheet1",
        "Model",
        "PowerPoint Presentation",
        "Microsoft Word",
        "Microsoft Word - birch.doc",
        "birch final.indd",
        "0000320193-17-000070",
        "978-3-16-148410-0",
    ],
)
def test_what_names_no_document_is_no_title(title):
    assert useful_title(title) is None


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Microsoft Word - Crane manual", "Crane manual"),
        ("  Crane\n manual\0", "Crane manual"),
        ("1984", "1984"),
        ("Model 3 of the crane", "Model 3 of the crane"),
        ("2001–2010", "2001–2010"),
        ("Filing 0000320193-17-000070", "Filing 0000320193-17-000070"),
        ("起重机 2018-12-31 1", "起重机 2018-12-31 1"),
    ],
)
def test_other_titles_are_kept(title, shown):
    assert useful_title(title) == shown
