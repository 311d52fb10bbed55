"""Readers follow publishes: the version in use stays open, the next one is there soon, and nothing waits for it."""

import threading
import time

import pytest

from parquetry.errors import SettingsError
from parquetry.flows.pipelines.migration import run_migration
from parquetry.flows.pipelines.migration_plan import MigrationRequest
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.search.service import SearchRequest
from parquetry.serving.service.follower import CorpusFollower, NotReady
from parquetry.storage.search import corpus_embedder
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.embedding_server import EmbeddingServer
from tests.workshop import Workshop

pytestmark = pytest.mark.slow


@pytest.fixture
def workshop(tmp_path):
    return Workshop(tmp_path)


@pytest.fixture
def following():
    """Start followers that are stopped at the end."""
    started = []

    def start(settings, announce=lambda _: None):
        follower = CorpusFollower(settings, announce)
        follower.start()
        started.append(follower)
        return follower

    yield start
    for each in started:
        each.stop()


def until(condition, seconds=60):
    """Wait for a condition; the bound only ends a test that would never pass."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def found(reader, query="oak"):
    return [hit.row["text"] for hit in reader.search(SearchRequest(query, mode="text")).hits]


def test_corpus_that_is_published_later_is_answered_then(workshop, following):
    follower = following(workshop.settings)
    with pytest.raises(NotReady, match="nothing is published"), follower.reader(wait=0.1):
        pass
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    with follower.reader(wait=60) as reader:
        assert found(reader) == ["An oak table."]


def test_each_publish_is_followed_and_announced(workshop, following):
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    announced = []
    follower = following(workshop.settings, announced.append)
    until(lambda: follower.version == 1)
    workshop.write("oak.md", "An oak chair.")
    workshop.refresh()
    until(lambda: follower.version == 2)
    with follower.reader() as reader:
        assert found(reader) == ["An oak chair."]
    until(lambda: announced == [0, 1, 2])


def test_reader_in_use_stays_open_and_is_closed_after_its_last_user(workshop, following):
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    follower = following(workshop.settings)
    with follower.reader(wait=60) as reader:
        workshop.write("oak.md", "An oak chair.")
        workshop.refresh()
        until(lambda: follower.version == 2)
        assert found(reader) == ["An oak table."]
        index = reader.index
        assert index.lease is not None
    assert index.lease is None


@pytest.mark.slow
def test_searches_beside_publishes_never_fail(workshop, following):
    workshop.write("oak.md", "An oak table, number 0.")
    workshop.refresh()
    follower = following(workshop.settings)
    until(lambda: follower.version == 1)
    failures, counted, stop = [], [0], threading.Event()

    def search():
        # A pause leaves the processor to the publishes, which take ten times as long otherwise.
        while not stop.wait(0.02):
            try:
                with follower.reader() as reader:
                    (text,) = found(reader)
                    assert text.startswith("An oak table")
                    counted[0] += 1
            except BaseException as error:  # noqa: BLE001 - reported by the assertion below
                failures.append(error)
                return

    threads = [threading.Thread(target=search) for _ in range(2)]
    for each in threads:
        each.start()
    for number in range(1, 6):
        workshop.write("oak.md", f"An oak table, number {number}.")
        workshop.refresh()
    until(lambda: follower.version == 6)
    stop.set()
    for each in threads:
        each.join()
    assert failures == []
    assert counted[0] > 0


def test_corpus_made_anew_in_its_place_is_followed(workshop, following):
    import shutil

    for text in ("An oak table.", "An oak chair."):
        workshop.write("oak.md", text)
        workshop.refresh()
    follower = following(workshop.settings)
    until(lambda: follower.version == 2)
    shutil.rmtree(workshop.settings.corpus.root)
    workshop.write("oak.md", "An oak shelf.")
    workshop.refresh()
    until(lambda: follower.version == 1)
    with follower.reader() as reader:
        assert found(reader) == ["An oak shelf."]


def test_damaged_version_leaves_the_one_before_in_use_and_says_why(workshop, following):
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    follower = following(workshop.settings)
    until(lambda: follower.version == 1)
    log = workshop.root / "corpus" / "documents" / "_delta_log"
    (log / f"{2:020d}.json").write_text("")
    until(lambda: follower.problem)
    assert f"{2:020d}.json" in follower.problem
    with follower.reader() as reader:
        assert found(reader) == ["An oak table."]


def test_version_is_announced_until_that_has_succeeded(workshop, following):
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    tries = []

    def announce(version):
        tries.append(version)
        if len(tries) < 3:
            raise [OSError(28, "No space left on device"), RuntimeError("unforeseen")][len(tries) - 1]

    follower = following(workshop.settings, announce)
    until(lambda: len(tries) == 3)
    assert tries == [0, 1, 1]
    until(lambda: not follower.problem)
    workshop.write("oak.md", "An oak chair.")
    workshop.refresh()
    until(lambda: tries[-1] == 2)


def switched(workshop, model):
    """Migrate a corpus whose settings keep the name of the model before."""
    for request in (
        MigrationRequest(workshop.settings, (("corpus.embedder", model),)),
        MigrationRequest(workshop.settings, action="switch"),
    ):
        run_migration(request, DirectEngine(), Observer())


def test_corpus_that_is_migrated_is_followed_with_the_new_model_for_queries(workshop, following, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        workshop.sections["embedding"] = {"base_url": server.url}
        workshop.write("oak.md", "An oak table.")
        workshop.refresh()
        follower = following(workshop.settings)
        until(lambda: follower.version == 1)
        with follower.reader() as before:
            switched(workshop, "openai:tiny")
            until(lambda: follower.version == 2)
            asked = len(server.requests)
            assert before.search(SearchRequest("oak", mode="vector")).hits
            assert len(server.requests) == asked
        with follower.reader() as reader:
            assert reader.search(SearchRequest("oak", mode="vector")).hits
        assert server.requests[-1].inputs == ["oak"]


def test_version_whose_queries_cannot_be_embedded_here_is_not_followed(workshop, following, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        workshop.sections["embedding"] = {"base_url": server.url}
        workshop.write("oak.md", "An oak table.")
        workshop.refresh()
        follower = following(workshop.settings)
        until(lambda: follower.version == 1)
        monkeypatch.setattr(corpus_embedder, "_migrated", {})
        refuse = {"switched": False}
        real = corpus_embedder.embedder_id

        def without_key(*arguments):
            if refuse["switched"]:
                raise SettingsError("the key of openai:tiny is missing")
            return real(*arguments)

        monkeypatch.setattr(corpus_embedder, "embedder_id", without_key)
        refuse["switched"] = True
        switched(workshop, "openai:tiny")
        until(lambda: "the key of openai:tiny is missing" in follower.problem)
        assert follower.version == 1
        with follower.reader() as reader:
            assert reader.search(SearchRequest("oak", mode="vector")).hits
        refuse["switched"] = False
        until(lambda: follower.version == 2)
