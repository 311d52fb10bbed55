"""The views `quality` and `pages`: right where the facts are known, NULL where they are not, for those who may see."""

import pytest

from parquetry.model import Access, Part, Quality
from parquetry.storage.connect import connect
from parquetry.storage.database import open_duckdb
from parquetry.storage.lake.snapshot_views import connect_snapshot, script
from parquetry.storage.search.export import scoped
from parquetry.storage.search.filters import Caller, Filters, restrict

FACTS = Quality(
    pages=4, without_text=(2, 4), unread=(4,), least=0, median=3.5, ocr=((1, 0.9),), ocr_confidence=0.9, unmapped=2,
    tables=None, cut=0,
)  # fmt: skip


@pytest.fixture
def scan(shelf):
    """A scan of four pages: read by OCR, blank, text, unread; and a text that was stored without facts."""
    parts = (Part(0, 7, "page", 1, None, "text"), Part(7, 20, "page", 3, "Index", "text"))
    shelf.extracted["scan.pdf"] = {"parts": parts, "quality": FACTS}
    shelf.publish({"scan.pdf": ["words of", "two pages"], "old.md": ["words"]}, metadata={"language": "nb"})
    return shelf


def told(connection, columns, view="quality", where="path = 'scan.pdf'"):
    return connection.execute(f"SELECT {columns} FROM {view} WHERE {where} ORDER BY ALL").fetchall()


def test_facts_are_columns(scan):
    with scan.connect() as connection:
        columns = "pages, pages_without_text, pages_unread, least_characters, median_characters, pages_ocr"
        assert told(connection, columns) == [(4, 2, 1, 0, 3.5, 1)]
        columns = "ocr_confidence, unmapped, unmapped_share, tables, cut, language, characters"
        assert told(connection, columns) == [(0.9, 2, pytest.approx(2 / 18), None, 0, "nb", 18)]


def test_known_loss_is_what_is_left_out_of_each_part(scan):
    with scan.connect() as connection:
        expected = 1 - (1 - 1 / 4) * (1 - 0.1 * 1 / 4) * (1 - 2 / 18)
        assert told(connection, "known_loss") == [(pytest.approx(expected, abs=1e-6),)]


@pytest.mark.parametrize(
    ("facts", "loss"),
    [
        (Quality(unmapped=0, cut=0), 0.0),
        (Quality(), 0.0),
        (Quality(cut=6), 0.25),
        (Quality(unmapped=90), 1.0),
        (Quality(pages=2, unread=(1, 2), without_text=(1, 2)), 1.0),
        (Quality(pages=2, unread=(), without_text=(1,), ocr=()), 0.0),
    ],
)
def test_a_fact_that_is_unknown_adds_nothing_to_the_loss(shelf, facts, loss):
    """`least` and `greatest` of DuckDB skip NULL, which made a loss of 100 % of a document without pages."""
    shelf.extracted["a.md"] = {"quality": facts}
    shelf.publish({"a.md": ["eighteen letters.."]})
    with shelf.connect() as connection:
        assert told(connection, "known_loss", where="true") == [(loss,)]


def test_facts_of_a_text_that_was_stored_without_are_null(scan):
    facts = "pages, pages_without_text, pages_unread, least_characters, median_characters, pages_ocr, ocr_confidence"
    with scan.connect() as connection:
        where = "path = 'old.md'"
        assert told(connection, f"{facts}, unmapped, unmapped_share, tables, cut, known_loss", where=where) == [
            (None,) * 12
        ]
        assert told(connection, "kind, page, characters, unread, ocr_confidence", "pages", where) == [
            ("document", 1, 5, None, None)
        ]


def test_each_page_has_a_row_with_or_without_text(scan):
    with scan.connect() as connection:
        assert told(connection, "page, kind, name, characters, unread, ocr_confidence", "pages") == [
            (1, "page", None, 7, False, 0.9),
            (2, "page", None, 0, False, None),
            (3, "page", "Index", 13, False, None),
            (4, "page", None, 0, True, None),
        ]


def test_the_language_of_a_programme_is_none(shelf):
    shelf.extracted["a.py"] = {"parts": (Part(0, 4, "document", 1, None, "code", "python"),)}
    shelf.publish({"a.py": ["code"]}, metadata={"language": "python"})
    shelf.publish({"a.ipynb": ["code"]}, metadata={"language": "julia"}, media_type="application/x-ipynb+json")
    with shelf.connect() as connection:
        assert told(connection, "language", where="true") == [(None,), (None,)]


def test_every_way_to_ask_has_the_same_rows(scan):
    with scan.connect() as connection, connect(str(scan.root)) as indexed, open_duckdb() as elsewhere:
        elsewhere.execute(script(scan.lake.snapshot()))
        for view in ("quality", "pages"):
            statement = f"SELECT * FROM {view} ORDER BY ALL"
            rows = connection.execute(statement).fetchall()
            assert rows
            assert indexed.execute(statement).fetchall() == elsewhere.execute(statement).fetchall() == rows


def test_facts_are_seen_by_those_who_see_the_document(scan):
    scan.permit("scan.pdf", Access("individual", user_id="ada"))
    seen = {}
    for user in ("ada", "eve"):
        snapshot = scan.lake.snapshot()
        with connect_snapshot(snapshot) as connection, scoped(snapshot, Filters(caller=Caller(user)), "none") as sql:
            restrict(connection, Caller(user))
            seen[user] = [
                each.execute(f"SELECT DISTINCT path FROM {view} ORDER BY 1").fetchall()
                for each in (connection, sql)
                for view in ("quality", "pages")
            ]
    assert seen == {"ada": [[("old.md",), ("scan.pdf",)]] * 4, "eve": [[("old.md",)]] * 4}


def test_facts_go_with_the_content_that_they_concern(scan):
    scan.extracted["scan.pdf"] = {"quality": Quality(unmapped=0)}
    scan.publish({"scan.pdf": ["new"]})
    with scan.connect() as connection:
        assert told(connection, "pages, unmapped") == [(None, 0)]
    with scan.connect(1) as connection:
        assert told(connection, "pages, unmapped") == [(4, 2)]
    scan.remove("scan.pdf")
    with scan.connect() as connection:
        assert told(connection, "path", where="true") == [("old.md",)]
