"""A service that fails every request fails the run, and good results are published: no outage is a success."""

import json

import pytest

from parquetry.errors import TransientError
from parquetry.serving.cli.main import run
from parquetry.sources import providers
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine import retries
from tests import shelf_source
from tests.flows.pipelines.test_images import picture
from tests.servers.chat_server import ChatServer
from tests.servers.chat_server import error as chat_error
from tests.servers.embedding_server import EmbeddingServer, embeddings, refusal
from tests.servers.small_s3 import small_s3
from tests.shelf_source import SHELVES, ShelfSource

pytestmark = pytest.mark.slow

DOWN = refusal(500, "down")
NO_KEY = refusal(401, "Incorrect API key provided")
NO_QUOTA = refusal(429, "You exceeded your current quota", "insufficient_quota")


class Desk:
    """A folder with settings, in which to run commands."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self._capsys = capsys
        self.settings()

    def settings(self, *tables, embedder="wordllama", refresh="workers = 1"):
        corpus = f'[corpus]\nroot = "corpus"\nembedder = "{embedder}"'
        refresh = f"[refresh]\nattempts = 1\nbatch_documents = 2\n{refresh}"
        extraction = "[extraction]\nworkers = 1\nocr = false"
        (self.folder / "parquetry.toml").write_text("\n".join((corpus, refresh, extraction, *tables)))

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def __call__(self, *arguments):
        """Run a command; return the exit code and the output."""
        self._capsys.readouterr()
        code = run([*arguments])
        return code, self._capsys.readouterr()

    def refresh(self, *options):
        """Run a refresh; return the exit code and the report."""
        code, printed = self("refresh", "--direct", "--json", *options)
        return code, json.loads(printed.out)

    def runs(self):
        """Return the status and error of all runs, oldest first."""
        _, printed = self("sql", "SELECT status, error FROM runs ORDER BY started_at", "--json")
        return [tuple(row) for row in json.loads(printed.out)["rows"]]

    def published(self):
        rows = current_rows(Lake(str(self.folder / "corpus")).snapshot())
        return sorted(f"{row.source}/{row.path}" for row in rows if row.status == "indexed")


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    return Desk(tmp_path, capsys)


def embedded_by(server, dimension="dimension = 8"):
    return f'[embedding]\nbase_url = "{server.url}"\napi_key = "x"\nattempts = 1\n{dimension}'


GOOD = '[[source]]\nname = "good"\nuri = "good"\nnamespace = "local"'
DOCS = '[[source]]\nname = "docs"\nuri = "docs"'
LOCAL = '[[namespace]]\nname = "local"\nembedder = "wordllama"'


@pytest.mark.parametrize(
    ("reply", "reason", "requests"),
    [(DOWN, "service-failed", 6), (NO_KEY, "service-refused", 1), (NO_QUOTA, "service-refused", 1)],
    ids=["down", "key", "quota"],
)
def test_embedding_service_that_fails_everything_fails_the_run_and_what_is_good_is_published(
    desk, reply, reason, requests
):
    for number in range(3):
        desk.write(f"docs/{number}.md", f"Rule {number}: count the boards.")
    desk.write("good/oak.md", "Oak costs 640 euros.")
    with EmbeddingServer(lambda _: reply) as server:
        # wordllama returns vectors of the same dimension as the service.
        desk.settings(LOCAL, embedded_by(server, "dimension = 64"), DOCS, GOOD, embedder="openai:m")
        code, report = desk.refresh()
        assert len(server.requests) == requests
    assert code == 4
    assert desk.published() == ["good/oak.md"]
    assert (report["documents"]["added"], report["documents"]["failed"], report["version"]) == (1, 3, 1)
    assert {each["reason"] for each in report["failures"]} == {reason}
    (outage,) = report["outages"]
    assert outage.startswith(f"source docs: the embedding service failed 3 of 3 documents ({reason}: ")
    assert desk.runs() == [("failed", outage)]

    with EmbeddingServer() as server:
        desk.settings(LOCAL, embedded_by(server, "dimension = 64"), DOCS, GOOD, embedder="openai:m")
        code, report = desk.refresh()
    assert (code, report["outages"], report["documents"]["changed"]) == (0, [], 3)
    assert desk.runs()[1] == ("completed", None)


def test_report_for_people_names_source_and_reason(desk):
    desk.write("docs/a.md", "Oak.")
    with EmbeddingServer(lambda _: DOWN) as server:
        desk.settings(embedded_by(server), DOCS, embedder="openai:m")
        code, printed = desk("refresh", "--direct", "--strict")
    assert code == 4
    assert "Failed: source docs: the embedding service failed its document (service-failed: " in printed.out
    assert "1 document in " in printed.out


def test_service_that_took_some_documents_is_no_outage_but_one_that_turns_the_account_away_is(desk):
    for name in ("walnut", "oak", "elm", "ash"):
        desk.write(f"docs/{name}.md", f"The {name} is late.")

    def served(reply):
        return lambda request: reply if any("walnut" in text for text in request.inputs) else embeddings(request)

    for reply, code, failed in ((DOWN, 0, 2), (NO_QUOTA, 4, 1)):
        with EmbeddingServer(served(reply)) as server:
            desk.settings(embedded_by(server), DOCS, embedder="openai:m")
            got, report = desk.refresh()
        assert (got, report["documents"]["failed"]) == (code, failed)
        assert len(report["outages"]) == (code == 4)
        desk.write("docs/oak.md", "The oak is late again.")
        desk.write("docs/elm.md", "The elm is late again.")


def test_documents_that_are_broken_do_not_hide_an_outage_nor_are_one(desk):
    desk.write("docs/broken.docx", b"PK\x03\x04 nothing more")
    desk.write("docs/empty.md", "")
    with EmbeddingServer(lambda _: DOWN) as server:
        desk.settings(embedded_by(server), DOCS, embedder="openai:m")
        assert desk.refresh()[0] == 0
        desk.write("docs/a.md", "Oak.")
        code, report = desk.refresh()
    assert (code, report["documents"]["failed"], len(report["outages"])) == (4, 2, 1)


def test_service_that_has_to_be_asked_for_its_dimension_and_is_down_fails_the_run_and_leaves_a_record(desk):
    desk.write("docs/a.md", "Oak.")
    for reply in (DOWN, NO_KEY):
        with EmbeddingServer(lambda _, reply=reply: reply) as server:
            desk.settings(embedded_by(server, ""), DOCS, embedder="openai:m")
            code, printed = desk("refresh", "--direct")
        assert code == 4
        assert printed.err.startswith("parquetry: the embedder cannot be opened: ")
    assert [status for status, _ in desk.runs()] == ["failed", "failed"]


def test_language_model_that_is_down_fails_the_run_of_a_source_of_images(desk):
    desk.write("docs/crane.png", picture())
    desk.write("good/oak.md", "Oak costs 640 euros.")
    good = GOOD.replace('\nnamespace = "local"', "")
    for status, reason in ((500, "service-failed"), (401, "service-refused")):
        with ChatServer([chat_error(status, "not now")]) as server:
            llm = f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\nattempts = 1'
            desk.settings("include_image_descriptions = true", llm, DOCS, good)
            code, report = desk.refresh()
        assert code == 4
        assert report["outages"][0].startswith(f"source docs: the language model failed its document ({reason}: ")
        assert desk.published() == ["good/oak.md"]


# --- stores


@pytest.fixture
def bucket(desk, monkeypatch):
    with small_s3() as store:
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        desk.write("good/oak.md", "Oak costs 640 euros.")
        desk.settings(GOOD, '[[source]]\nname = "shelf"\nuri = "s3://shelf/"')
        yield store


def put(store, key, text):
    import boto3

    boto3.client("s3", endpoint_url=store.endpoint).put_object(Bucket="shelf", Key=key, Body=text.encode())


def test_store_that_is_down_fails_the_run_and_the_other_source_is_published(desk, bucket):
    bucket.fail("GET", "", times=10_000, status=503)
    code, report = desk.refresh()
    assert (code, desk.published()) == (4, ["good/oak.md"])
    (outage,) = report["outages"]
    assert outage.startswith("source shelf: its store failed its listing (unavailable: s3://shelf/")
    assert desk.runs() == [("failed", outage)]


def test_store_that_lists_its_objects_and_gives_none_fails_the_run(desk, bucket):
    put(bucket, "a.md", "Rule a.")
    put(bucket, "b.md", "Rule b.")
    bucket.fail("GET", r"\.md$", times=10_000, status=403)
    for _ in range(2):
        code, report = desk.refresh()
        assert (code, desk.published()) == (4, ["good/oak.md"])
        assert report["outages"][0].startswith("source shelf: its store failed 2 of 2 documents (unreadable: ")


@pytest.fixture
def shelf(desk, monkeypatch):
    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    SHELVES["a"] = ShelfSource(a__md="Rule a.", b__md="Rule b.")
    desk.settings('[[source]]\nname = "a"\nuri = "shelf://a"')
    yield SHELVES["a"]
    SHELVES.clear()


def test_document_that_its_store_refuses_run_after_run_fails_no_run_of_its_own(desk, shelf):
    """One unreadable object must not fail every run of a working source."""
    shelf.fetch_failures["b.md"] = [PermissionError(13, "denied", "b.md") for _ in range(9)]
    codes = []
    for _ in range(2):
        code, report = desk.refresh()
        codes.append(code)
        assert (report["documents"]["failed"], report["outages"]) == (1, [])
    assert codes == [0, 0]
    shelf.contents["a.md"] = "Rule a, changed."
    shelf.fetch_failures["a.md"] = [PermissionError(13, "denied", "a.md") for _ in range(9)]
    code, report = desk.refresh()
    assert code == 4


def test_listing_that_broke_off_is_an_outage_unless_something_was_refreshed(desk, shelf):
    desk.refresh()
    down = TransientError("unreachable", "no answer")
    shelf.scan_failures = [(1, down)]
    code, report = desk.refresh()
    assert (code, report["documents"]["removed"]) == (4, 0)
    assert report["outages"] == [
        "source a: its store failed its listing (unreachable: no answer); the next run tries again"
    ]
    shelf.contents["a.md"] = "Rule a, changed."
    shelf.scan_failures = [(1, down)]
    code, report = desk.refresh()
    assert (code, report["documents"]["changed"], len(report["failures"])) == (0, 1, 1)
