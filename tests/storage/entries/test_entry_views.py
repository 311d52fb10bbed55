"""Documents, entries and sessions share a table; each view, macro, list and export contains only its own."""

import shutil
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from parquetry.model import ENTRY_TYPE, SESSION_TYPE, TRANSCRIPTS_TYPE, Access
from parquetry.storage.connect import connect
from parquetry.storage.index import views as index_views
from parquetry.storage.index.open_index import in_memory
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import script
from parquetry.storage.search import visible_index as search
from parquetry.storage.search.export import export_corpus, scoped
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.namespaces import namespaces_of
from parquetry.storage.search.searcher import Searcher
from tests.records import row
from tests.storage.notebook import Notebook, entry, vector
from tests.storage.shelf import EMBEDDER

pytestmark = pytest.mark.slow

OAK = entry("The oak is old.")
ADAS = entry("The oak is Ada's.", Access("individual", user_id="ada"))
KNOWLEDGE = ("entries", "entry_history", "decisions", "sessions")


@pytest.fixture
def notebook(shelf):
    """Create ten documents, one of them without a media type, two entries, and a session with its file."""
    notebook = Notebook(shelf)
    shelf.publish({f"{number}.md": [f"the oak number {number}"] for number in range(10)})
    shelf.publish({"untyped": ["an oak of no type"]}, media_type=None)
    nothing = {"revision": 0, "chunks": 0, "tokens": 0, "characters": 0, "source": "chats", "run_id": "run-s"}
    kinds = {"chats.json": TRANSCRIPTS_TYPE, "chats.json!/one": SESSION_TYPE}
    rows = [row(path, media_type=kind, **nothing) for path, kind in kinds.items()]
    shelf.lake.publish(shelf.lake.snapshot(), rows, "run-s")
    notebook.learn(OAK, ADAS)
    return notebook


def counted(connection, *views):
    return [connection.execute(f"SELECT count(*) FROM {view}").fetchone()[0] for view in views]


def test_every_view_has_its_own_rows_with_and_without_an_index(notebook):
    views = ("published", "documents", "chunks", "texts", *KNOWLEDGE)
    for options in ({}, {"search": False}, {"version": 4}):
        with connect(str(notebook.shelf.root), **options) as connection:
            assert counted(connection, *views) == [15, 11, 11, 11, 2, 2, 2, 1]


def test_rows_are_read_by_what_they_are(notebook):
    snapshot = notebook.lake.snapshot()
    kinds = {what: {each.media_type for each in current_rows(snapshot, what=what)} for what in ("knowledge", "all")}
    assert kinds["knowledge"] == {ENTRY_TYPE, SESSION_TYPE, TRANSCRIPTS_TYPE}
    assert kinds["all"] == kinds["knowledge"] | {"text/markdown", None}
    assert len(current_rows(snapshot)) == 11


@pytest.mark.parametrize("two_stage", [False, True], ids=["exact", "two-stage"])
def test_macros_find_documents_alone_and_as_searches_do(notebook, monkeypatch, two_stage):
    if two_stage:
        monkeypatch.setattr(search, "EXACT_CHUNKS", 5)
        monkeypatch.setattr(index_views, "TWO_STAGE_ROWS", 5)
        monkeypatch.setattr(index_views, "TWO_STAGE_CANDIDATES", 11)
    opened = in_memory(notebook.lake.snapshot(), notebook.shelf.settings.language)
    asked = vector(OAK.text)
    for mode, statement in {
        "text": "SELECT chunk_id, score FROM search_text('oak', k := 20)",
        "vector": f"SELECT chunk_id, score FROM search_vector({asked.tolist()}, k := 20)",
        "hybrid": f"SELECT chunk_id, score FROM search_hybrid('oak', {asked.tolist()}, 20)",
    }.items():
        hits = Searcher(opened.connection, Filters(), notebook.shelf.settings).search(
            "oak", {EMBEDDER: asked}, mode, 20
        )
        assert len(hits) == 11
        found = opened.connection.execute(statement).fetchall()
        assert [chunk for chunk, _ in found] == [hit.row["chunk_id"] for hit in hits]
        assert np.allclose([score for _, score in found], [hit.score for hit in hits])
    opened.close()


def test_export_takes_along_the_entries_that_the_caller_may_see(notebook, tmp_path):
    for caller, texts in ((Caller("ada"), {OAK.text, ADAS.text}), (Caller(), {OAK.text})):
        folder = tmp_path / str(caller.user_id)
        done = export_corpus(notebook.lake.snapshot(), Filters(caller=caller), folder, "none")
        assert (done.documents, done.chunks) == (11, 11)
        with duckdb.connect(str(done.path), read_only=True) as connection:
            assert {text for (text,) in connection.execute("SELECT text FROM entries").fetchall()} == texts
            assert counted(connection, "search_text('old', k := 5)") == [0]
        with scoped(notebook.lake.snapshot(), Filters(caller=caller), "none") as connection:
            assert counted(connection, "entries") == [len(texts)]


def test_views_of_a_script_tell_entries_and_decisions_in_any_duckdb(notebook):
    with duckdb.connect() as connection:
        connection.execute(script(notebook.lake.snapshot()))
        assert counted(connection, *KNOWLEDGE) == [2, 2, 2, 1]


def test_namespace_counts_documents_and_entries_apart(notebook):
    notebook.learn(entry("Only known.", namespace="minds"))
    told = {
        each.namespace: (each.documents, each.chunks, each.entries) for each in namespaces_of(notebook.lake.snapshot())
    }
    assert told == {"default": (11, 11, 2), "minds": (0, 0, 1)}


def test_corpus_of_before_entries_has_empty_views_until_it_is_written_to(shelf):
    shelf.publish({"a.md": ["one"]})
    for table in ("entries", "decisions"):
        shutil.rmtree(shelf.root / table)
    for options in ({}, {"search": False}):
        with connect(str(shelf.root), **options) as connection:
            assert counted(connection, "documents", *KNOWLEDGE) == [1, 0, 0, 0, 0]
    notebook = Notebook(shelf)
    notebook.lake = Lake(str(shelf.root), create=True)
    notebook.learn(OAK)
    assert notebook.live() == {OAK.text: 1}


def test_removal_of_everything_named_leaves_entries(notebook):
    from parquetry.planning.rows import RunStamp
    from parquetry.storage.lake.rewrite import remove_documents
    from tests.records import NOW

    remove_documents(notebook.lake, ["*"], RunStamp("gone", NOW))
    assert notebook.shelf.rows() == []
    assert set(notebook.live()) == {OAK.text, ADAS.text}


def test_entry_of_a_public_scope_with_an_owner_is_in_a_scope_of_its_own(notebook):
    owned = entry(OAK.text, replace(OAK.access, user_id="ada"))
    notebook.learn(owned)
    assert owned.entry_id != OAK.entry_id
    with notebook.shelf.connect() as connection:
        assert counted(connection, "entries") == [3]
