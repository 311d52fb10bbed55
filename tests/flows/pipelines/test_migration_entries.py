"""Entries are migrated as documents are, also those that were superseded; what is forgotten has no candidate."""

from __future__ import annotations

import pytest

from parquetry.flows.pipelines.migration import run_migration
from parquetry.flows.pipelines.migration_plan import MigrationRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.rows import new_stamp
from parquetry.serving.search.service import SearchRequest
from parquetry.storage.database import open_duckdb, sql_list
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.erasure import forget_user
from parquetry.storage.search.filters import Filters
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.embedding_server import EmbeddingServer
from tests.storage.notebook import ADA, ELM, OAK, Notebook, decision, entry
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

BEFORE, AFTER = "wordllama:l2-supercat/1@256", "openai:tiny/1@8"


class Shelf:
    """A workshop's corpus, as a notebook needs it."""

    def __init__(self, workshop):
        self._workshop = workshop
        # The first write of entries makes their tables.
        self.lake = Lake(workshop.settings.corpus.root, create=True)

    def connect(self, version=None):
        return connect_snapshot(self.lake.snapshot(version))


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        workshop = Workshop(tmp_path)
        workshop.sections["embedding"] = {"base_url": server.url}
        workshop.write("0.md", "The oak table is old.")
        workshop.refresh()
        yield workshop


@pytest.fixture
def notebook(workshop):
    return Notebook(Shelf(workshop))


def migrate(workshop, *values, action="build"):
    return run_migration(MigrationRequest(workshop.settings, values, action), DirectEngine(), Observer())


def rows(workshop):
    return current_rows(workshop.lake.snapshot(), what="knowledge")


def test_entries_and_documents_are_switched_together_and_found(workshop, notebook):
    notebook.learn(OAK, ELM, embedder=BEFORE)
    before = notebook.live()
    report = migrate(workshop, ("corpus.embedder", "openai:tiny"))
    assert report.documents.changed == 3
    assert {row.embedder for row in rows(workshop)} == {BEFORE}
    migrate(workshop, action="switch")
    assert {row.embedder for row in rows(workshop)} == {AFTER}
    assert notebook.live() == before
    found = workshop.search(OAK.text, mode="vector", filters=Filters(what="entries"))
    assert found.hits[0].row["text"] == OAK.text
    assert examine(workshop.lake, workshop.settings.search).healthy


def test_superseded_entry_comes_back_with_the_new_model(workshop, notebook):
    notebook.learn(OAK, embedder=BEFORE)
    ash = entry("The oak is very old.")
    merged = decision(1, "merged", ash, adds=(ash.entry_id,), retires=(OAK.entry_id,))
    notebook.decide([merged], [ash], embedder=BEFORE)
    migrate(workshop, ("corpus.embedder", "openai:tiny"))
    migrate(workshop, action="switch")
    (taken,) = notebook.ledger("decision_id")[-1:]
    undone = decision(2, "undone", ash, adds=(), undoes=taken[0], entry_id=None)
    notebook.decide([undone])
    assert OAK.text in notebook.live()
    assert {row.embedder for row in rows(workshop)} == {AFTER}
    assert workshop.search(OAK.text, mode="vector", filters=Filters(what="entries")).hits


def test_entry_that_was_learned_between_build_and_switch_is_built_by_the_switch(workshop, notebook):
    notebook.learn(OAK, embedder=BEFORE)
    migrate(workshop, ("corpus.embedder", "openai:tiny"))
    notebook.learn(ELM, session="s-2", embedder=BEFORE)
    assert migrate(workshop, action="switch").documents.changed == 1
    assert {row.embedder for row in rows(workshop)} == {AFTER}


def stored_texts(workshop, table):
    files = workshop.lake.snapshot().files[table]
    with open_duckdb() as connection:
        return sorted(
            text for (text,) in connection.execute(f"SELECT text FROM read_parquet({sql_list(files)})").fetchall()
        )


def test_what_is_forgotten_has_no_candidate_and_all_others_keep_theirs(workshop, notebook):
    mine = entry("Ada likes oak.", ADA)
    notebook.learn(OAK, mine, embedder=BEFORE)
    migrate(workshop, ("corpus.embedder", "openai:tiny"))
    assert stored_texts(workshop, "chunks").count(mine.text) == 2
    forget_user(Lake(workshop.settings.corpus.root, create=True), "ada", new_stamp(), workshop.settings.search)
    for table in ("texts", "chunks"):
        assert mine.text not in stored_texts(workshop, table)
        assert stored_texts(workshop, table).count(OAK.text) == 2
    report = migrate(workshop, action="switch")
    assert (report.documents.changed, report.documents.scanned) == (0, 2)
    assert workshop.search(OAK.text, mode="vector", filters=Filters(what="entries")).hits


def test_query_of_entries_asks_for_no_vector_of_the_model_before(workshop, notebook):
    notebook.learn(OAK, embedder=BEFORE)
    migrate(workshop, ("corpus.embedder", "openai:tiny"))
    migrate(workshop, action="switch")
    with workshop.reader() as reader:
        assert reader.search(SearchRequest("oak", filters=Filters(what="both"))).hits
        spaces = reader.index.connection.execute("SELECT embedder FROM parts.spaces").fetchall()
    assert spaces == [(AFTER,)]
