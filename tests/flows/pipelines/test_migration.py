"""A migration is built beside what searches see, from what is stored, and switched to in one publish."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from parquetry.errors import OutageError, RefusedError, SettingsError
from parquetry.flows.pipelines import migration as pipeline
from parquetry.flows.pipelines.migration_plan import (
    MigrationRequest,
    abandon_migration,
    candidate_snapshot,
    preview_migration,
)
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.migrations import outdated_settings, read_migrations
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.migration_state import migrations_state
from tests.damage import flip_vector
from tests.flows.pipelines.migration_workshop import (
    NEW,
    TO_NEW,
    embedders,
    migrate,
    migration_workshop,
    text_of,
    texts_sent,
    visible,
)
from tests.servers.embedding_server import EmbeddingServer, embeddings, refusal
from tests.workshop import Workshop

pytestmark = pytest.mark.slow


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def workshop(tmp_path, server):
    return migration_workshop(tmp_path, server)


def test_build_changes_nothing_for_searches_and_the_switch_everything_at_once(workshop, server):
    before = visible(workshop)
    built = migrate(workshop, TO_NEW)
    assert (built.version, built.documents.changed, built.documents.scanned) == (1, 6, 6)
    assert built.work.chunks_embedded == built.work.chunks_written == len(before)
    assert visible(workshop) == before
    switched = migrate(workshop, action="switch")
    assert (switched.version, switched.documents.changed) == (2, 0)
    assert embedders(workshop) == {"openai:tiny/1@8"}
    assert [row[:6] for row in visible(workshop)] == [row[:6] for row in before]
    assert sorted(texts_sent(server)) == sorted({row[5] for row in before})
    assert examine(workshop.lake, workshop.settings.search).healthy


def test_switched_corpus_is_the_one_that_a_refresh_would_make(workshop, tmp_path):
    migrate(workshop, TO_NEW)
    migrate(workshop, action="switch")
    workshop.sections["corpus"] = {"embedder": NEW}
    fresh = Workshop(tmp_path / "fresh")
    fresh.sections |= workshop.sections
    fresh.sections["source"] = {"uri": str(workshop.folder)}
    fresh.refresh()
    assert visible(workshop) == visible(fresh)
    assert {path: (row.fingerprint, row.chunks, row.tokens) for path, row in workshop.rows().items()} == {
        path: (row.fingerprint, row.chunks, row.tokens) for path, row in fresh.rows().items()
    }
    report = workshop.refresh()
    assert (report.documents.unchanged, report.version) == (6, 2)


@pytest.mark.parametrize("sizes", [{"size": 60, "overlap": 0}, {"size": 300}, {"overlap": 60}])
def test_chunks_from_stored_texts_are_those_of_a_fresh_corpus(workshop, tmp_path, sizes):
    before = visible(workshop)
    migrate(workshop, [(f"chunking.{key}", value) for key, value in sizes.items()])
    assert visible(workshop) == before
    migrate(workshop, action="switch")
    workshop.sections["chunking"] |= sizes
    fresh = Workshop(tmp_path / "fresh")
    fresh.sections |= workshop.sections
    fresh.sections["source"] = {"uri": str(workshop.folder)}
    fresh.refresh()
    assert visible(workshop) == visible(fresh) != before
    assert workshop.refresh().documents.unchanged == 6


def test_embedder_and_chunks_change_together_with_headings_in_the_template(workshop, tmp_path):
    workshop.sections["embedding"]["template"] = "{title} {headings} {text}"
    workshop.write("headed.md", "# Oak\n\n## Boards\n\n" + text_of(7))
    workshop.refresh()
    migrate(workshop, [*TO_NEW, ("chunking.size", 90)])
    migrate(workshop, action="switch")
    workshop.sections["corpus"] = {"embedder": NEW}
    workshop.sections["chunking"]["size"] = 90
    fresh = Workshop(tmp_path / "fresh")
    fresh.sections |= workshop.sections
    fresh.sections["source"] = {"uri": str(workshop.folder)}
    fresh.refresh()
    assert visible(workshop) == visible(fresh)
    assert workshop.refresh().documents.unchanged == 7


def test_source_that_is_gone_changes_nothing(workshop):
    before = visible(workshop)
    shutil.rmtree(workshop.folder)
    migrate(workshop, TO_NEW)
    report = migrate(workshop, action="switch")
    assert report.work.bytes_read == 0
    assert [row[:6] for row in visible(workshop)] == [row[:6] for row in before]
    assert embedders(workshop) == {"openai:tiny/1@8"}


def test_documents_that_changed_between_build_and_switch_are_built_by_the_switch(workshop, server):
    migrate(workshop, TO_NEW)
    sent = len(texts_sent(server))
    workshop.write("0.md", "Order 0: signed by two.")
    workshop.write("new.md", "Order 1: signed by three.")
    (workshop.folder / "5.md").unlink()
    (workshop.folder / "4.md").rename(workshop.folder / "moved.md")
    workshop.refresh()
    report = migrate(workshop, action="switch")
    assert report.documents.changed == 2
    assert len(texts_sent(server)) == sent + 2
    assert set(workshop.rows()) == {"0.md", "1.md", "2.md", "3.md", "moved.md", "new.md"}
    assert embedders(workshop) == {"openai:tiny/1@8"}
    assert workshop.refresh().documents.unchanged == 6


def test_refresh_at_the_moment_of_the_switch_is_built_and_published_too(workshop, monkeypatch):
    migrate(workshop, TO_NEW)
    real, raced = Lake.publish_table, []

    def publish(lake, *arguments, **options):
        if not raced:
            raced.append(True)
            workshop.write("late.md", "Order 9: signed late.")
            workshop.refresh()
        return real(lake, *arguments, **options)

    monkeypatch.setattr(Lake, "publish_table", publish)
    report = migrate(workshop, action="switch")
    assert report.version == 3
    assert workshop.rows()["late.md"].embedder == "openai:tiny/1@8"
    assert embedders(workshop) == {"openai:tiny/1@8"}


def test_switch_that_dies_before_it_is_recorded_is_a_switch(workshop, monkeypatch):
    """The publish itself says so: a refresh right after it does not embed everything back."""
    migrate(workshop, TO_NEW)

    def end(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "end_migration", end)
        with pytest.raises(KeyboardInterrupt):
            migrate(workshop, action="switch")
    assert embedders(workshop) == {"openai:tiny/1@8"}
    assert [each.state for each in read_migrations(workshop.lake.layout).all] == ["switched"]
    assert workshop.refresh().documents.unchanged == 6
    with pytest.raises(SettingsError, match=r"no migration of .* is being built"):
        abandon_migration(workshop.settings)


def test_settings_that_say_what_was_before_are_followed_and_told_of(workshop, server, caplog):
    migrate(workshop, TO_NEW)
    assert outdated_settings(workshop.settings) is None
    migrate(workshop, action="switch")
    line = outdated_settings(workshop.settings)
    assert 'set corpus.embedder = "openai:tiny" instead of "wordllama"' in line
    workshop.write("new.md", "Order 1: signed by three.")
    report = workshop.refresh()
    assert (report.documents.added, report.documents.unchanged) == (1, 6)
    assert line in caplog.text
    assert embedders(workshop) == {"openai:tiny/1@8"}
    assert workshop.search("signed by three", mode="vector").hits
    workshop.sections["corpus"] = {"embedder": NEW}
    assert outdated_settings(workshop.settings) is None


def test_settings_changed_before_the_switch_find_the_vectors_and_searches_go_on(workshop, server):
    """An operator who edits the file first loses nothing: the next refresh publishes what was built."""
    migrate(workshop, TO_NEW)
    sent = len(texts_sent(server))
    workshop.sections["corpus"] = {"embedder": NEW}
    assert workshop.search("oak", mode="vector").hits
    assert workshop.refresh().documents.changed == 6
    assert len(texts_sent(server)) == sent
    report = migrate(workshop, action="switch")
    assert (report.version, read_migrations(workshop.lake.layout).active) == (2, None)


def test_going_back_is_a_migration_that_embeds_nothing(workshop, server):
    migrate(workshop, TO_NEW)
    migrate(workshop, action="switch")
    before = visible(workshop)
    report = migrate(workshop, [("corpus.embedder", "wordllama")])
    assert report.work.chunks_embedded == 0
    migrate(workshop, action="switch")
    assert outdated_settings(workshop.settings) is None
    assert [row[:6] for row in visible(workshop)] == [row[:6] for row in before]
    assert workshop.refresh().documents.unchanged == 6


def test_search_that_began_before_the_switch_ends_with_the_model_before(workshop, server):
    migrate(workshop, TO_NEW)
    with workshop.reader() as reader:
        assert reader.index.version == 1
        migrate(workshop, action="switch")
        asked = len(server.requests)
        assert reader.search(SearchRequest("count the boards", mode="vector")).version == 1
    assert len(server.requests) == asked
    assert workshop.search("count the boards", mode="vector").version == 2
    assert server.requests[-1].inputs == ["count the boards"]


def test_build_that_the_service_interrupts_goes_on_and_pays_nothing_twice(workshop, server):
    answered_in_all = []
    refusing = True

    def answer(request):
        if refusing and len(answered_in_all) == 3:
            return refusal(401, "the key was withdrawn", "invalid_api_key")
        answered_in_all.append(request)
        return embeddings(request)

    server._answer = answer
    workshop.sections["refresh"]["workers"] = 1
    report = migrate(workshop, TO_NEW)
    assert isinstance(report.error, OutageError)
    with pytest.raises(OutageError, match="nothing was published"):
        migrate(workshop, action="switch")
    refusing = False
    done = migrate(workshop, TO_NEW)
    assert 0 < done.documents.changed < 6
    assert migrate(workshop, action="switch").version == 2
    paid = [text for request in answered_in_all for text in request.inputs if "Rule" in text]
    assert sorted(paid) == sorted({row[5] for row in visible(workshop)})


def test_budget_stops_the_build_and_what_was_bought_is_kept(workshop, server):
    cost = preview_migration(MigrationRequest(workshop.settings, TO_NEW)).cost_usd
    workshop.sections["refresh"]["budget_usd"] = cost / 2
    with pytest.raises(RefusedError, match="this migration would cost about"):
        migrate(workshop, TO_NEW)
    assert read_migrations(workshop.lake.layout).active is None
    assert texts_sent(server) == []


def test_preview_counts_what_is_left_and_writes_nothing(workshop):
    preview = preview_migration(MigrationRequest(workshop.settings, TO_NEW))
    chunks = visible(workshop)
    assert (preview.progress.documents, preview.progress.built, preview.progress.left) == (6, 0, 6)
    assert (preview.amount.chunks, preview.amount.texts) == (len(chunks), len({row[7] for row in chunks}))
    assert preview.cost_usd == pytest.approx(preview.amount.tokens / 1000)
    assert read_migrations(workshop.lake.layout).all == ()
    migrate(workshop, TO_NEW)
    assert preview_migration(MigrationRequest(workshop.settings)).progress.left == 0


def test_state_says_how_far_it_is(workshop):
    assert migrations_state(workshop.settings).active is None
    migrate(workshop, TO_NEW)
    workshop.write("new.md", "Order 1: signed by three.")
    workshop.refresh()
    state = migrations_state(workshop.settings).active
    assert (state.documents, state.built) == (7, 6)
    migrate(workshop, action="switch")
    assert migrations_state(workshop.settings).active is None


def test_abandoned_migration_can_be_built_again_for_nothing(workshop, server):
    migrate(workshop, TO_NEW)
    sent = len(texts_sent(server))
    abandon_migration(workshop.settings)
    with pytest.raises(SettingsError, match=r"no migration of .* is being built"):
        migrate(workshop, action="switch")
    migrate(workshop, TO_NEW)
    assert len(texts_sent(server)) == sent
    migrate(workshop, action="switch")
    assert embedders(workshop) == {"openai:tiny/1@8"}
    with pytest.raises(SettingsError, match=r"no migration of .* is being built"):
        abandon_migration(workshop.settings)


def test_second_migration_beside_one_that_is_built_is_refused(workshop):
    migrate(workshop, TO_NEW)
    with pytest.raises(SettingsError, match=r"another migration .* is being built"):
        migrate(workshop, [("chunking.size", 60)])


def test_migration_to_what_is_there_is_refused(workshop):
    with pytest.raises(SettingsError, match=r"has corpus\.embedder = wordllama already; there is nothing to migrate"):
        migrate(workshop, [("corpus.embedder", "wordllama")])


def test_migration_that_goes_on_with_other_settings_is_refused(workshop):
    migrate(workshop, TO_NEW)
    workshop.sections["embedding"]["template"] = "{title} {text}"
    with pytest.raises(SettingsError, match="begun with other settings"):
        migrate(workshop, action="switch")


def test_values_that_do_not_go_together_are_refused(workshop):
    with pytest.raises(SettingsError, match="must be smaller than size"):
        migrate(workshop, [("chunking.size", 20)])


def test_text_that_is_damaged_stops_the_switch_and_is_named(workshop):
    flip_vector(Path(workshop.lake.snapshot().files["texts"][0]))
    report = migrate(workshop, TO_NEW)
    assert {failure.reason for failure in report.failures} == {"damaged"}
    with pytest.raises(RefusedError, match="cannot be built from what is stored"):
        migrate(workshop, action="switch")
    assert embedders(workshop) == {"wordllama:l2-supercat/1@256"}


def test_candidate_can_be_searched_before_the_switch(workshop, tmp_path):
    migrate(workshop, TO_NEW)
    snapshot, after = candidate_snapshot(workshop.settings, tmp_path / "candidate")
    with Reader(after, snapshot.version, snapshot=snapshot) as reader:
        found = reader.search(SearchRequest("count the boards", mode="vector", k=100))
        assert {row[0] for row in reader.query("SELECT DISTINCT embedder FROM chunks")[1]} == {"openai:tiny/1@8"}
    assert len(found.hits) > 6
    assert workshop.lake.snapshot().version == 1
