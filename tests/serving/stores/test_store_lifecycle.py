"""Stores outlive what happens to a service: failed removals, expiry, other workers, restarts, and reading alone."""

import signal
import sqlite3
import time
from contextlib import closing

import openai
import pytest

from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.files.table import FILE
from parquetry.serving.state.folder import state_folder
from parquetry.serving.stores.upkeep import look_after
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.servers.knowledge_service import KnowledgeService
from tests.servers.worker_clients import one_client_of_each_worker
from tests.serving.stores.conftest import ASH, OAK, RIGHTS, client_of
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("store-lifecycle")]
COST = "What does the oak table cost?"
DAY_US = 24 * 3600 * 1_000_000


def later(app, days=0.0, seconds=0.0):
    """Let time pass for the stores and attachments of a service."""
    passed = int(days * DAY_US + seconds * 1_000_000)
    with closing(sqlite3.connect(app.resources.state / FILE, timeout=60)) as connection, connection:
        connection.execute("UPDATE stores SET last_active_at = last_active_at - ?", (passed,))
        connection.execute("UPDATE attachments SET touched_at = touched_at - ?", (passed,))


def put(client, *contents):
    return [
        client.files.create(file=(f"{number}.md", content), purpose="assistants").id
        for number, content in enumerate(contents)
    ]


@pytest.fixture
def idle(tmp_path):
    """Run an application whose jobs the test carries out."""
    workshop = Workshop(tmp_path)
    workshop.write("leave.md", "# Leave\n\nEverybody has thirty days of holiday.\n")
    workshop.refresh()
    tables = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"wait_seconds": 0.01}}
    with running_app(parse_settings(tables, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def removals(app):
    return [job for job in app.resources.jobs.list(kind="remove", limit=100) if not job.is_final]


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_removal_of_a_cancelled_batch_is_tried_again_until_it_succeeds(idle, how):
    jobs = idle.resources.jobs
    with client_of(idle, "ada") as ada:
        store = ada.vector_stores.create()
        batch = ada.vector_stores.file_batches.create(store.id, file_ids=put(ada, OAK, ASH))
        ada.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id)
        for _ in range(2):
            (removal,) = removals(idle)
            if how == "fails":
                jobs.claim()
                jobs.fail(removal.id, "outage", "the place of the corpus cannot be reached")
            else:
                jobs.cancel(removal.id)
            look_after(idle.resources)
            assert removals(idle) == [], "it is not tried again at once"
            later(idle, seconds=61)
            look_after(idle.resources)
        (removal,) = removals(idle)
        jobs.claim()
        jobs.finish(removal.id, {"documents": []})
        later(idle, seconds=61)
        look_after(idle.resources)
        assert removals(idle) == []
        assert idle.resources.stores.in_work() == []
        found = ada.vector_stores.file_batches.retrieve(batch.id, vector_store_id=store.id)
        assert (found.status, found.file_counts.cancelled, found.file_counts.total) == ("cancelled", 2, 2)


def test_store_expires_when_its_days_are_over(app):
    with client_of(app, "exa") as exa:
        (file,) = put(exa, OAK)
        policy = {"anchor": "last_active_at", "days": 2}
        store = exa.vector_stores.create(expires_after=policy)
        exa.vector_stores.files.create_and_poll(file, vector_store_id=store.id, poll_interval_ms=100)
        (namespace,) = [each for each in exa.vector_stores.list() if each.metadata == {"namespace": "default"}]
        later(app, days=1.9)
        # A search is activity: the days begin again.
        assert exa.vector_stores.search(store.id, query=COST).data
        later(app, days=1.9)
        assert exa.vector_stores.retrieve(store.id).status == "completed"
        later(app, days=0.2)
        assert exa.vector_stores.retrieve(store.id).status == "expired"
        for refused in (
            lambda: exa.vector_stores.search(store.id, query=COST),
            lambda: exa.vector_stores.files.create(store.id, file_id=file),
            lambda: exa.vector_stores.update(store.id, expires_after={"anchor": "last_active_at", "days": 300}),
        ):
            with pytest.raises(openai.BadRequestError) as told:
                refused()
            assert (told.value.code, told.value.param) == ("store_expired", "vector_store_id")
        # The rounds of upkeep remove its files, from the namespace too, and leave the file itself.
        end = time.monotonic() + 60
        while app.resources.stores.to_expire():
            assert time.monotonic() < end
            look_after(app.resources)
            time.sleep(0.05)
        found = exa.vector_stores.search(namespace.id, query=COST)
        assert not any("640 euros" in part.text for each in found for part in each.content)
        expired = exa.vector_stores.retrieve(store.id)
        assert (expired.status, expired.file_counts.total) == ("expired", 0)
        assert exa.files.content(file).read() == OAK
        assert exa.vector_stores.delete(store.id).deleted


def test_service_that_only_reads_refuses_writes_in_openais_form(idle, tmp_path):
    with client_of(idle, "ada") as ada:
        (file,) = put(ada, OAK)
        store = ada.vector_stores.create(name="kept")
    tables = {"corpus": idle.resources.settings.corpus.model_dump(), "serve": {"read_only": True}}
    with running_app(parse_settings(tables, "test")) as reading, client_of(reading, "ada") as ada:
        with reading.resources.follower.reader(wait=60):
            pass
        stores = ada.vector_stores
        for write in (
            lambda: ada.files.create(file=("a.md", ASH), purpose="assistants"),
            lambda: ada.files.delete(file),
            lambda: stores.create(name="new"),
            lambda: stores.update(store.id, name="new"),
            lambda: stores.delete(store.id),
            lambda: stores.files.create(store.id, file_id=file),
            lambda: stores.files.update(file, vector_store_id=store.id, attributes={}),
            lambda: stores.files.delete(file, vector_store_id=store.id),
            lambda: stores.file_batches.create(store.id, file_ids=[file]),
            lambda: stores.file_batches.cancel("vsfb_1", vector_store_id=store.id),
            lambda: ada.uploads.create(bytes=1, filename="a", mime_type="text/plain", purpose="assistants"),
        ):
            with pytest.raises(openai.PermissionDeniedError) as told:
                write()
            assert (told.value.code, told.value.type) == ("insufficient_permissions", "invalid_request_error")
            assert "changes nothing" in told.value.message
        assert ada.files.content(file).read() == OAK
        assert stores.retrieve(store.id).name == "kept"
        (namespace,) = [each for each in stores.list() if each.metadata == {"namespace": "default"}]
        assert stores.search(namespace.id, query="How many days of holiday?").data


@pytest.fixture
def place(tmp_path):
    """Return a folder with settings, whose corpus has one document, and a token."""
    workshop = Workshop(tmp_path)
    workshop.write("leave.md", "# Leave\n\nEverybody has thirty days of holiday.\n")
    workshop.refresh()
    (tmp_path / "parquetry.toml").write_text('[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n')
    settings = parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")
    with TokenStore(state_folder(settings)) as tokens:
        return tmp_path, tokens.create("ada", user_id="ada", rights=RIGHTS)[1]


def test_what_one_worker_makes_every_other_worker_has(place):
    folder, token = place
    with KnowledgeService(folder, "--workers", "2") as service:
        service.wait_ready()
        with one_client_of_each_worker(service, token) as (here, there):
            for maker, other in ((here, there), (there, here)):
                store = maker.vector_stores.create(name="made")
                (file,) = put(maker, OAK)
                attached = maker.vector_stores.files.create(store.id, file_id=file, attributes={"team": "blue"})
                assert attached.status == "completed"
                # The next request of all, on the other worker.
                (found,) = other.vector_stores.search(store.id, query=COST)
                assert (found.file_id, found.attributes) == (file, {"team": "blue"})
                assert store.id in [each.id for each in other.vector_stores.list()]
                assert other.files.content(file).read() == OAK
                assert other.vector_stores.update(store.id, name="changed").name == "changed"
                assert maker.vector_stores.retrieve(store.id).name == "changed"
                assert other.vector_stores.files.delete(file, vector_store_id=store.id).deleted
                assert not maker.vector_stores.search(store.id, query=COST).data
                assert other.vector_stores.delete(store.id).deleted
                with pytest.raises(openai.NotFoundError):
                    maker.vector_stores.retrieve(store.id)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_batch_goes_on_after_a_restart(place, how):
    folder, token = place
    texts = [f"# Board {number}\n\nBoard {number} costs {number + 100} euros.".encode() for number in range(60)]
    with KnowledgeService(folder) as service:
        service.wait_ready()
        ada = openai.OpenAI(base_url=f"{service.url}/v1", api_key=token, max_retries=0)
        store = ada.vector_stores.create()
        batch = ada.vector_stores.file_batches.create(store.id, file_ids=put(ada, *texts))
        assert batch.file_counts.in_progress == len(texts)
        service.stop(how)
    with KnowledgeService(folder) as service:
        service.wait_ready()
        ada = openai.OpenAI(base_url=f"{service.url}/v1", api_key=token, max_retries=0)
        batches = ada.vector_stores.file_batches
        counts = batches.poll(batch.id, vector_store_id=store.id, poll_interval_ms=100).file_counts
        assert (counts.completed, counts.failed, counts.total) == (len(texts), 0, len(texts))
        (found, *_) = ada.vector_stores.search(store.id, query="What does board 42 cost?", max_num_results=1)
        assert "Board" in found.content[0].text
