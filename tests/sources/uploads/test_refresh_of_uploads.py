"""Uploads become documents: whatever happens in whatever order, the corpus is what a rebuild would make of it."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquetry.errors import SettingsError
from parquetry.flows.pipelines.documents import run_refresh
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.model import Access
from parquetry.serving.cli.progress import Observer
from parquetry.sources.uploads.scopes import scope_of_uploads
from parquetry.sources.uploads.store import UploadStore
from parquetry.tasks.engine.base import DirectEngine
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

MARKDOWN = b"---\nauthor: Of the text\nlanguage: en\n---\n# Oak\n\nOak dries for nine weeks.\n"
COLUMNS = (
    *("document_id", "namespace", "source", "path", "uri", "filename", "title", "media_type", "size", "etag"),
    *("modified_at", "content_hash", "removed", "status", "error", "extractor", "embedder", "pages", "characters"),
    *("chunks", "tokens", "access", "metadata", "uploaded_by", "created_at"),
)


@pytest.fixture
def store(workshop):
    return UploadStore(workshop.settings)


def put(store, name="oak.md", content=MARKDOWN, **told):
    return store.put("default", name, content, filename="", **told)[0]


def refresh(workshop, *paths, **options):
    return workshop.refresh(scopes=(scope_of_uploads(workshop.settings, "default", *paths),), **options)


def documents(workshop):
    """Return the uploaded documents as a search shows them, by path."""
    rows = workshop.rows().values()
    return {row.path: tuple(getattr(row, name) for name in COLUMNS) for row in rows if row.source == "uploads"}


def test_upload_is_a_document_with_what_came_with_it(workshop, store):
    upload = put(store, metadata={"author": "Of the upload", "nested": {"a": [1, None]}}, uploaded_by="ada")
    report = refresh(workshop, upload.path)
    assert (report.documents.added, report.documents.scanned) == (1, 1)
    (row,) = workshop.rows().values()
    assert (row.source, row.path, row.uploaded_by, row.created_at) == ("uploads", "oak.md", "ada", upload.created_at)
    assert row.metadata == {"author": "Of the upload", "language": "en", "nested": {"a": [1, None]}}
    assert row.uri == "upload://default/oak.md"
    assert len(workshop.search("how long does oak dry").hits) == 1


def test_metadata_and_access_alone_publish_a_row_and_extract_nothing(workshop, store):
    put(store, metadata={"author": "Of the upload"})
    before = refresh(workshop)
    put(store, metadata={"room": 3}, access=Access(tags=("wood",)))
    report = refresh(workshop, "oak.md")
    assert report.version == before.version + 1
    assert (report.work.chunks_written, report.work.bytes_read, report.documents.permissions) == (0, 0, 1)
    (row,) = workshop.rows().values()
    assert row.metadata == {"author": "Of the text", "language": "en", "room": 3}, "its own author shows again"
    put(store, metadata={}, access=Access(tags=("wood",)))
    report = refresh(workshop, "oak.md")
    assert (report.work.chunks_written, report.work.bytes_read, report.documents.changed) == (0, 0, 1)
    assert refresh(workshop).documents.unchanged == 1


def test_declared_type_decides_where_the_name_does_not(workshop, store):
    page = b"<p>Oak dries <b>slowly</b>.</p>"
    put(store, "page", page, content_type="text/html; charset=utf-8")
    put(store, "notes", b"# Oak\n\ntext", content_type="text/markdown")
    put(store, "sheet", b"a;b\n1;2\n", content_type="text/csv")
    put(store, "notes.txt", b"# Oak\n\ntext", content_type="text/markdown")
    refresh(workshop)
    types = {path: row.media_type for path, row in workshop.rows().items()}
    assert types == {
        "page": "text/html", "notes": "text/markdown", "sheet": "text/csv", "notes.txt": "text/plain",
    }  # fmt: skip
    put(store, "notes", b"# Oak\n\ntext", content_type="text/plain")
    refresh(workshop, "notes")
    assert workshop.rows()["notes"].media_type == "text/plain"


def test_one_document_is_refreshed_without_those_below_it(workshop, store):
    for name in ("a", "a/b", "c"):
        put(store, name, name.encode())
    refresh(workshop)
    store.delete("default", "a")
    store.delete("default", "c")
    report = refresh(workshop, "a", allow_removals=True)
    assert report.documents.removed == 1
    assert sorted(workshop.rows()) == ["a/b", "c"]


def test_same_bytes_under_two_names_share_no_metadata(workshop, store):
    put(store, "one.md", metadata={"secret": "of one"}, access=Access("individual", user_id="ada"))
    refresh(workshop)
    put(store, "two.md")
    workshop.write("three.md", MARKDOWN)
    workshop.refresh()
    rows = workshop.rows()
    assert rows["two.md"].metadata == rows["three.md"].metadata == {"author": "Of the text", "language": "en"}
    assert (rows["two.md"].uploaded_by, rows["three.md"].uploaded_by) == (None, None)
    put(store, "two.md", metadata={"room": 1})
    refresh(workshop, "two.md")
    assert workshop.rows()["two.md"].metadata == {"author": "Of the text", "language": "en", "room": 1}


def test_refresh_of_everything_takes_uploads_in_and_never_removes_any(workshop, store):
    put(store)
    workshop.write("a.md", "# A\n\ntext")
    assert workshop.refresh().documents.added == 2
    shutil.rmtree(workshop.root / "corpus" / "uploads")
    for options in ({}, {"allow_removals": True}):
        assert workshop.refresh(**options).documents.removed == 0
    assert sorted(workshop.rows()) == ["a.md", "oak.md"]
    assert workshop.refresh(targets=("uploads",)).refused
    assert workshop.refresh(targets=("uploads",), allow_removals=True).documents.removed == 1


def test_refresh_of_other_sources_leaves_uploads_alone(workshop, store):
    workshop.write("a.md", "# A\n\ntext")
    put(store)
    workshop.refresh()
    before = documents(workshop)
    put(store, metadata={"not": "yet"})
    (workshop.folder / "a.md").unlink()
    workshop.write("b.md", "# B\n\ntext")
    report = workshop.refresh(targets=("docs",), allow_removals=True)
    assert (report.documents.removed, report.documents.scanned) == (1, 1)
    assert documents(workshop) == before


def test_corpus_of_uploads_alone_is_refreshed_without_sources(workshop, store):
    put(store)
    alone = workshop.settings.model_copy(update={"source": ()})
    from parquetry.flows.pipelines.documents import Request

    assert run_refresh(Request(alone), DirectEngine(), Observer()).documents.added == 1
    store.delete("default", "oak.md")
    with pytest.raises(SettingsError, match="no source is configured"):
        run_refresh(Request(alone), DirectEngine(), Observer())


def test_uploads_are_reindexed_and_rechunked_with_their_metadata(workshop, store):
    put(store, metadata={"author": "Of the upload"})
    refresh(workshop)
    request = reindex_request(workshop.settings, ("oak.md",), None, embeddings_only=False)
    assert run_refresh(request, DirectEngine(), Observer()).work.chunks_reused == 1
    workshop.sections["chunking"] = {"size": 400, "overlap": 20}
    assert workshop.refresh().documents.changed == 1
    assert workshop.rows()["oak.md"].metadata["author"] == "Of the upload"
    put(store)
    refresh(workshop)
    assert workshop.rows()["oak.md"].metadata["author"] == "Of the text"


def test_failed_upload_is_kept_and_tried_when_it_is_replaced(workshop, store):
    put(store, "bad.docx", b"PK\x03\x04 no document", metadata={"a": 1})
    report = refresh(workshop)
    assert [(each.status, each.uri) for each in report.failures] == [("failed", "upload://default/bad.docx")]
    assert workshop.rows()["bad.docx"].metadata == {"a": 1}
    put(store, "bad.docx", b"PK\x03\x04 no document", metadata={"a": 2})
    refresh(workshop)
    row = workshop.rows()["bad.docx"]
    assert (row.status, row.metadata) == ("failed", {"a": 2})


# --- the law

NAMES = ("a.md", "b.md", "sub/c.txt")
CONTENTS = (
    MARKDOWN,
    b"# Ash\n\nAsh dries for six weeks.",
    b"---\ntitle: Beech\nroom: 7\n---\nBeech.",
    b"",
    b"PK\x03\x04 no",
)
METADATA = ({}, {"author": "Ada"}, {"room": {"number": 1}}, {"author": None, "tags": ["x"]})
ACCESSES = (Access(), Access(tags=("t",)), Access("organization", org_id="acme"))
PUT = st.tuples(*map(st.sampled_from, (NAMES, CONTENTS, METADATA, ACCESSES)))
STEPS = st.lists(
    st.one_of(PUT, st.sampled_from(NAMES), st.just("refresh"), st.just("everything")), min_size=2, max_size=8
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_any_order_of_changes_is_the_same_as_a_rebuild(steps):
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        store = UploadStore(workshop.settings)
        touched = set()
        for step in steps:
            if step == "refresh" and touched:
                refresh(workshop, *touched, allow_removals=True)
            elif step == "everything":
                workshop.refresh()
            elif isinstance(step, tuple):
                name, content, metadata, access = step
                touched.add(put(store, name, content, metadata=metadata, access=access).path)
            elif isinstance(step, str) and step in NAMES:
                store.delete("default", step)
                touched.add(step)
        refresh(workshop, allow_removals=True)
        changed = documents(workshop)
        other = Workshop(Path(folder) / "other")
        other.sections["uploads"] = {"uri": store.root}
        refresh(other)
        # A document that failed keeps the text of its last good revision, which a rebuild cannot have.
        good = {path for path, row in other.rows().items() if row.status == "indexed"}
        assert {path: changed[path] for path in good} == {path: documents(other)[path] for path in good}
        assert {path: row.status for path, row in workshop.rows().items()} == {
            path: row.status for path, row in other.rows().items()
        }


def test_replaced_in_the_middle_of_a_run_is_read_as_it_is_then(workshop, store):
    upload = put(store)
    put(store, content=b"# New\n\nall of it")
    assert store.read(replace(upload)) == b"# New\n\nall of it"
