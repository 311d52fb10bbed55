"""Cost of a refresh: a stat, a hash, a row, or only the changes."""

from __future__ import annotations

import pytest

from parquetry.errors import RefusedError
from tests.opened_files import opened_in

LEAVE = "# Leave\n\nEverybody has thirty days of leave.\n\n# Sickness\n\nCall before nine o'clock.\n"
TOOLS = "# Tools\n\nThe planer stands in hall two. Its blades are changed on Mondays.\n"


@pytest.fixture
def published(workshop):
    workshop.write("leave.md", LEAVE)
    workshop.write("tools.md", TOOLS)
    report = workshop.refresh()
    assert report.documents.added == 2
    return workshop


def test_first_refresh_publishes_every_document_with_its_chunks(published):
    rows = published.rows()
    assert {path: row.status for path, row in rows.items()} == {"leave.md": "indexed", "tools.md": "indexed"}
    assert published.lake.history()[0].version == 1
    stored = published.reader().chunks(rows["tools.md"].document_id)
    text = published.reader().text(rows["tools.md"].document_id)
    assert [text[chunk["start"] : chunk["end"]] for chunk in stored] == [chunk["text"] for chunk in stored]


def test_unchanged_files_are_not_read(published):
    with opened_in(published.folder) as opened:
        report = published.refresh()
    assert (report.documents.unchanged, report.work.bytes_read, opened) == (2, 0, [])
    assert report.version == report.version_before == 1


def test_touched_file_with_same_bytes_is_hashed_once_and_not_processed(published):
    published.touch("leave.md")
    report = published.refresh()
    assert report.documents.unchanged == 2
    assert report.work.bytes_read == 0
    assert report.work.chunks_written == 0
    assert published.rows()["leave.md"].etag != ""
    # The new time is stored: the next refresh does not hash the file again.
    assert published.refresh().version == report.version


def test_moved_file_costs_one_row_and_keeps_its_chunks(published):
    before = published.rows()["leave.md"]
    (published.folder / "people").mkdir()
    (published.folder / "leave.md").rename(published.folder / "people" / "leave.md")
    report = published.refresh()
    assert (report.documents.moved, report.documents.removed, report.documents.added) == (1, 0, 0)
    assert report.work.chunks_written == 0
    rows = published.rows()
    assert set(rows) == {"people/leave.md", "tools.md"}
    assert rows["people/leave.md"].revision == before.revision
    assert published.search("days of leave").hits[0].row["uri"].endswith("people/leave.md")


def test_copied_file_shares_the_stored_revision(published):
    published.write("copy.md", LEAVE)
    report = published.refresh()
    assert report.documents.added == 1
    assert report.work.chunks_written == 0
    rows = published.rows()
    assert rows["copy.md"].revision == rows["leave.md"].revision
    (published.folder / "leave.md").unlink()
    published.refresh()
    assert [hit.row["filename"] for hit in published.search("days of leave", k=1).hits] == ["copy.md"]


def test_edited_file_embeds_only_the_chunks_whose_text_changed(published):
    published.sections["chunking"] = {"size": 60, "overlap": 0}
    published.refresh()
    published.write("leave.md", LEAVE.replace("nine o'clock", "eight o'clock"))
    report = published.refresh()
    assert report.documents.changed == 1
    assert report.work.chunks_embedded == 1
    assert report.work.chunks_reused == report.work.chunks_written - 1 > 0


def test_removed_file_leaves_and_its_version_can_still_be_read(published):
    (published.folder / "tools.md").unlink()
    report = published.refresh()
    assert report.documents.removed == 1
    assert set(published.rows()) == {"leave.md"}
    assert set(published.rows(version=1)) == {"leave.md", "tools.md"}
    reader = published.reader(version=1)
    assert reader.connection.execute("SELECT count(DISTINCT uri) FROM chunks").fetchall() == [(2,)]


def test_chunk_setting_changed_rechunks_from_stored_text(published):
    published.sections["chunking"] = {"size": 40, "overlap": 0}
    with opened_in(published.folder) as opened:
        report = published.refresh()
    assert report.documents.changed == 2
    assert (report.work.bytes_read, opened) == (0, [])
    assert published.rows()["leave.md"].chunks > 2
    assert published.search("thirty days").hits


def test_embedding_setting_changed_embeds_again_without_reading(published):
    published.sections["embedding"] = {"template": "{title}: {text}"}
    report = published.refresh()
    assert report.documents.changed == 2
    assert report.work.bytes_read == 0
    assert report.work.chunks_embedded == report.work.chunks_written > 0


def test_extraction_setting_changed_concerns_only_formats_that_use_it(published):
    published.write("page.html", "<html><body><h1>Visit</h1><p>Visitors report at the gate.</p></body></html>")
    published.refresh()
    published.sections["extraction"] = {"workers": 1, "main_content_only": False}
    (plan,) = published.plan().sources
    assert {change.item.path: change.effort for change in plan.changes} == {"page.html": "extract"}
    assert plan.unchanged == 2


def test_permissions_changed_republishes_rows_alone(published):
    published.sections["source"] = {"visibility": "organization", "org_id": "acme", "tags": ["policy"]}
    report = published.refresh()
    assert report.documents.permissions == 2
    assert report.work.chunks_written == 0
    assert published.rows()["leave.md"].access.org_id == "acme"


def test_reindex_of_embeddings_computes_every_vector_anew(published):
    from parquetry.flows.pipelines.documents import run_refresh
    from parquetry.flows.pipelines.reindex import reindex_request
    from parquetry.serving.cli.progress import Observer
    from parquetry.tasks.engine.base import DirectEngine

    request = reindex_request(published.settings, ("leave.md",), None, embeddings_only=True)
    report = run_refresh(request, DirectEngine(), Observer())
    assert (report.documents.scanned, report.documents.changed) == (1, 1)
    assert report.work.chunks_embedded == report.work.chunks_written > 0


def test_plan_of_a_refreshed_corpus_is_empty(published):
    plan = published.plan()
    assert [(source.changes, source.unchanged) for source in plan.sources] == [((), 2)]
    assert plan.estimate.tokens == 0


def test_plan_writes_nothing(workshop):
    workshop.write("leave.md", LEAVE)
    assert [change.action for change in workshop.plan().changes] == ["added"]
    assert not (workshop.root / "corpus").exists()


def test_broken_new_content_keeps_the_last_good_revision(published):
    published.write("table.json", '{"rule": "no smoking in the hall"}')
    published.refresh()
    good = published.rows()["table.json"]
    published.write("table.json", '{"rule": ')
    report = published.refresh()
    assert report.documents.failed == 1
    row = published.rows()["table.json"]
    assert (row.status, row.revision) == ("failed", good.revision)
    assert published.search("no smoking", mode="text").hits[0].row["filename"] == "table.json"
    # The failure is still reported, and not retried until the document changes.
    again = published.refresh()
    assert (again.documents.failed, again.work.bytes_read) == (1, 0)
    assert [failure.known for failure in again.failures] == [True]


def test_mass_removal_is_refused_and_changes_nothing(workshop):
    for number in range(30):
        workshop.write(f"{number}.md", f"Rule {number} says to count to {number}.\n")
    workshop.refresh()
    for number in range(15):
        (workshop.folder / f"{number}.md").unlink()
    report = workshop.refresh()
    assert len(report.refused) == 1
    assert "15 of 30" in report.refused[0]
    assert report.documents.removed == 0
    assert len(workshop.rows()) == 30
    assert workshop.refresh(allow_removals=True).documents.removed == 15
    assert len(workshop.rows()) == 15


def test_budget_stops_before_anything_is_spent(published):
    published.sections["embedding"] = {"price_per_million_tokens": 1000.0, "template": "again {text}"}
    published.sections["corpus"] = {"embedder": "openai:some-model"}
    published.sections["embedding"] |= {"base_url": "http://127.0.0.1:9/v1", "dimension": 8}
    published.sections["refresh"] = {"budget_usd": 0.000001}
    with pytest.raises(RefusedError, match="budget"):
        published.refresh()


def test_same_text_in_several_documents_is_embedded_once(workshop):
    for number in range(6):
        workshop.write(f"{number}.txt", "The same notice hangs on every door.")
    workshop.sections["refresh"] = {"batch_documents": 1, "workers": 3}
    report = workshop.refresh()
    assert report.work.chunks_written == 6
    assert report.work.chunks_embedded == 1


def test_identical_names_in_two_folders_are_two_documents(workshop):
    workshop.write("a/read.md", "The first folder tells of oak.")
    workshop.write("b/read.md", "The second folder tells of beech.")
    workshop.refresh()
    assert set(workshop.rows()) == {"a/read.md", "b/read.md"}
