"""`documents --worst` lists the documents that were read worst, and says why."""

from dataclasses import replace

import pytest

from parquetry.storage.connect import connect
from parquetry.storage.lake.shards import stored_text
from tests.files.pdf_writer import black_box, line, lines, write_pdf
from tests.serving.program import settle

pytestmark = pytest.mark.slow

BODY = ["The warehouse in Trondheim holds spare parts", "and every crate carries the number of its shelf."]


def add(desk):
    """Add a document with a page that is a picture, one with glyphs that mean nothing, one that is fine, one locked."""
    (desk.folder / "parquetry.toml").write_text(
        (desk.folder / "parquetry.toml").read_text().replace("[extraction]", "[extraction]\nocr = false")
    )
    texts = [line(72, 700, "written"), black_box(72, 72, 300, 300), b"", line(72, 700, "also written")]
    files = {
        "half.pdf": write_pdf(texts),
        "glyphs.pdf": write_pdf([lines(72, 700, BODY)], nameless="TW"),
        "fine.pdf": write_pdf([lines(72, 700, BODY)]),
        "picture.pdf": write_pdf([black_box(72, 72, 300, 300)]),
    }
    for name, content in files.items():
        (desk.folder / "docs" / name).write_bytes(content)


def without_facts(*arguments, **options):
    return replace(stored_text(*arguments, **options), quality=None)


def test_the_worst_documents_are_listed_with_the_reasons(desk):
    settle(desk)
    assert desk("documents", "--worst", "5").stdout.splitlines()[0] == "No document is known to have lost anything."
    add(desk)
    settle(desk)
    lines = desk("documents", "--worst", "5").stdout.splitlines()
    assert [part.strip() for part in lines[0].split("  ") if part] == ["path", "known loss", "why"]
    assert [[part.strip() for part in row.split("  ") if part] for row in lines[2:4]] == [
        ["half.pdf", "25.0 %", "1 of 4 pages not fully read"],
        ["glyphs.pdf", "2.2 %", "2 characters unmapped (2.2 %)"],
    ]
    assert "not indexed: `parquetry documents --status failed` and `--status skipped`." in lines[4]
    assert len(lines) == 5


def test_as_json_it_holds_the_facts_and_at_most_so_many_documents(desk):
    settle(desk)
    add(desk)
    settle(desk)
    told = desk("documents", "--worst", "1", "--json").json
    (worst,) = told["documents"]
    assert (worst["path"], told["unknown"]) == ("half.pdf", 0)
    documents = desk("documents", "--json").json["documents"]
    assert told["not_indexed"] == sum(not row["revision"] for row in documents) >= 1
    facts = worst["quality"]
    assert (facts["known_loss"], facts["pages"], facts["pages_without_text"], facts["pages_unread"]) == (0.25, 4, 2, 1)
    assert (facts["ocr_confidence"], facts["language"], facts["tables"]) == (None, "en-GB", 0)
    (other,) = desk("documents", "glyphs.pdf", "--worst", "9", "--json").json["documents"]
    assert other["quality"]["unmapped"] == 2
    with connect(str(desk.folder / "corpus")) as corpus:
        found = corpus.sql("SELECT path FROM quality WHERE known_loss > 0 ORDER BY known_loss DESC").fetchall()
    assert found == [("half.pdf",), ("glyphs.pdf",)]


def test_documents_that_were_read_before_are_counted_as_unknown(desk, monkeypatch):
    settle(desk)
    desk.write("elm.txt", "An elm.")
    with monkeypatch.context() as before:
        before.setattr("parquetry.tasks.documents.batch.stored_text", without_facts)
        settle(desk)
    assert desk("documents", "elm.txt", "--worst", "5").stdout.splitlines() == [
        "No document is known to have lost anything.",
        "1 document was read before this was recorded: `parquetry reindex --all` reads them again.",
    ]
    assert desk("documents", "elm.txt", "--worst", "5", "--json").json["unknown"] == 1
    assert desk("reindex", "--all", "--direct").code == 0
    assert desk("documents", "elm.txt", "--worst", "5", "--json").json["unknown"] == 0


def test_facts_stay_when_the_stored_text_is_chunked_again(desk):
    settle(desk)
    add(desk)
    settle(desk)
    before = desk("documents", "half.pdf", "--worst", "1", "--json").json["documents"][0]
    settings = desk.folder / "parquetry.toml"
    settings.write_text(f"{settings.read_text()}[chunking]\nsize = 200\noverlap = 20\n")
    settle(desk)
    after = desk("documents", "half.pdf", "--worst", "1", "--json").json["documents"][0]
    assert before["revision"] != after["revision"]
    assert before["quality"] == after["quality"]


def test_two_lists_at_once_are_refused(desk):
    told = desk("documents", "--worst", "5", "--notes")
    assert told.code == 2
    assert told.complaint == "--notes and --worst are two lists; give one of them"
