"""A service that repeats its credentials: the secret is in nothing that is printed, logged or written."""

import base64
import json
from urllib.parse import quote

import pytest

from parquetry.serving.cli.main import run
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine import retries
from tests.servers.chat_server import ChatServer, said
from tests.servers.chat_server import error as chat_error
from tests.servers.embedding_server import EmbeddingServer, Reply, embeddings, refusal
from tests.written_bytes import holding

pytestmark = pytest.mark.slow

KEY = "sk-planted/7Q+xZk93?w"
SECRETS = {
    "key": KEY,
    "key in base64": base64.b64encode(KEY.encode()).decode().rstrip("="),
    "key of a user in base64": base64.b64encode(f"me:{KEY}".encode()).decode()[8:24],
    "key in a URL": quote(KEY, safe=""),
    "password": "Hx-91-planted",
    "user and password in base64": base64.b64encode(b"planter:Hx-91-planted").decode(),
    "signature": "c2lnbmVk1planted",
}


def repeated(request):
    """Return the received credentials in every form in which a service might repeat them."""
    code, other = (base64.b64encode(text.encode()).decode() for text in (KEY, f"me:{KEY}"))
    basic = SECRETS["user and password in base64"]
    return (
        f"no such key: {request.headers['authorization']} ({code}, {other}, {quote(KEY, safe='')}) "
        f"Authorization: Basic {basic} (planter:Hx-91-planted), see http://proxy/?a=1&api_key={SECRETS['signature']}"
    )


@pytest.fixture
def desk(tmp_path, monkeypatch):
    for folder in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR"):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(folder, str(tmp_path / folder))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "TMPDIR"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    (tmp_path / "docs").mkdir()
    for number in range(2):
        (tmp_path / "docs" / f"{number}.md").write_text(f"Rule {number}: count the boards.")
    return tmp_path


def settings(desk, url, *tables, key=""):
    head = f'[corpus]\nroot = "corpus"\nembedder = "openai:m"\n[embedding]\nbase_url = "{url}"\n{key}\nattempts = 1\n'
    rest = 'dimension = 8\n[extraction]\nworkers = 1\nocr = false\n[refresh]\nattempts = 1\n[search]\nlog = "log"\n'
    (desk / "parquetry.toml").write_text("\n".join((head + rest, *tables)))


DOCS = '[[source]]\nname = "docs"\nuri = "docs"'
COMMANDS = (
    ("plan", "--json"),
    ("refresh", "--direct"),
    ("refresh", "--direct", "--json", "-v"),
    ("reindex", "--direct", "--all"),
    ("search", "boards"),
    ("documents", "--status", "failed"),
    ("documents", "--notes", "--json"),
    ("status",),
    ("sql", "SELECT * FROM runs"),
    ("sql", "SELECT * FROM failures", "--json"),
    ("history",),
    ("doctor",),
)


def answers(status):
    """Make a service that fails on one of the two documents."""

    def answer(request):
        if not any("Rule 1" in text for text in request.inputs):
            return embeddings(request)
        said = repeated(request)
        return refusal(status, said) if status != 200 else Reply(200, {"object": "list", "said": said})

    return answer


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
def test_secret_that_an_embedding_service_repeats_is_in_nothing_printed_or_written(desk, capfd, caplog, status):
    with EmbeddingServer(answers(status)) as server:
        settings(desk, server.url, DOCS)
        told = ""
        for command in COMMANDS:
            run([*command])
            printed = capfd.readouterr()
            told += printed.out + printed.err
        assert server.requests
    assert KEY in server.requests[0].headers["authorization"]
    print(told)
    assert "***" in told
    shown = {name: secret for name, secret in SECRETS.items() if secret in told or secret in caplog.text}
    assert shown == {}
    assert Lake.exists("corpus")
    assert holding(desk, SECRETS) == []


def test_secret_in_the_settings_file_is_as_one_of_the_environment(desk, capfd, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    with EmbeddingServer(answers(400)) as server:
        settings(desk, server.url, DOCS, key=f"api_key = '{KEY}'")
        run(["refresh", "--direct"])
    printed = capfd.readouterr()
    assert not [name for name, secret in SECRETS.items() if secret in printed.out + printed.err]
    (desk / "parquetry.toml").unlink()
    assert holding(desk, SECRETS) == []


def test_documents_that_hold_a_secret_are_left_as_they_are(desk, capfd):
    (desk / "docs" / "0.md").write_text(f"The key of the workshop is {KEY}.")
    with EmbeddingServer(embeddings) as server:
        settings(desk, server.url, DOCS)
        assert run(["refresh", "--direct"]) == 0
        capfd.readouterr()
        assert run(["show", "docs/0.md"]) == 0
    assert f"The key of the workshop is {KEY}." in capfd.readouterr().out


SESSION = {
    "id": "s1",
    "messages": [
        {"role": "user", "content": "Which glue does the bench need, and how long does it take to dry?"},
        {"role": "assistant", "content": "It needs bone glue, and 12 hours to dry."},
    ],
}


def knowing(body):
    """A model that mistakes the key for knowledge."""
    statement = {"text": f"Glue opens with {KEY}.", "kind": "fact", "level": "public", "confidence": 0.9}
    return said(json.dumps({"entries": [{**statement, "evidence": ["m1", "1"]}]}))


@pytest.mark.parametrize(
    "rule",
    [
        lambda _: chat_error(400, f"Bearer {KEY} is no key"),
        lambda _: chat_error(500, f"Bearer {KEY} is no key"),
        lambda _: said(f"Bearer {KEY} is no key"),
        knowing,
    ],
    ids=["refused", "down", "in-words", "as-knowledge"],
)
def test_secret_that_a_language_model_repeats_is_in_nothing_printed_or_written(desk, capfd, rule):
    (desk / "chats").mkdir()
    (desk / "chats" / "s1.json").write_text(json.dumps(SESSION))
    with ChatServer(rule) as server:
        chats = '[[source]]\nname = "chats"\nuri = "chats"\ncontent = "sessions"'
        model = f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\nattempts = 1'
        settings(desk, server.url, model, chats)
        text = (desk / "parquetry.toml").read_text().replace("openai:m", "wordllama").replace("dimension = 8\n", "")
        (desk / "parquetry.toml").write_text(text)
        for command in (("sessions", "refresh", "--direct"), ("decisions",), ("entries",), ("sql", "FROM decisions")):
            run([*command])
        assert server.keys[0] == f"Bearer {KEY}"
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err
    assert holding(desk, SECRETS) == []


OLD = "sk-old-before-masking-1"


@pytest.fixture
def old_corpus(desk, capfd):
    """A corpus, its index and a cached answer with a key that a service left and that was not known as a secret."""
    with EmbeddingServer(lambda _: refusal(500, f"no {OLD} here")) as server:
        settings(desk, server.url, DOCS)
        run(["refresh", "--direct"])
    with EmbeddingServer(lambda request: repeating(request, f"no {OLD} here")) as server:
        settings(desk, server.url, DOCS)
        run(["refresh", "--direct"])
        answers = Answers(layout_of("corpus"))
        answers.put("ada", "k1", {"text": OLD})
        answers.put("ada", "k2", {"text": "other"})
        run(["search", "boards"])
        capfd.readouterr()
        yield desk


def repeating(request, said):
    return refusal(400, said) if any("Rule 1" in text for text in request.inputs) else embeddings(request)


def doctor(capfd, *options):
    code = run(["doctor", "--json", *options])
    printed = capfd.readouterr()
    assert OLD not in printed.out + printed.err
    return code, json.loads(printed.out)


def test_doctor_names_what_holds_a_secret_from_before_and_takes_it_out(old_corpus, capfd, monkeypatch):
    corpus = old_corpus / "corpus"
    secrets = {"old": OLD}
    assert {place.split("/")[0] for place in holding(corpus, secrets)} >= {
        "old: values of runs",
        "old: values of notes",
    }
    assert doctor(capfd)[0] == 0
    monkeypatch.setenv("FORMER_API_KEY", OLD)
    before = {file.name for file in (corpus / "runs").glob("*.parquet")}
    code, told = doctor(capfd)
    (finding,) = told["findings"]
    assert (code, finding["check"], finding["severity"]) == (1, "secret", "problem")
    for each in ("rows of documents.error", "rows of failures.detail", "row of notes.note", "1 kept answer"):
        assert each in finding["detail"]
    assert run(["doctor"]) == 1
    assert capfd.readouterr().out.count("is whole, and holds secrets; `parquetry doctor --fix` takes them out") == 1
    code, told = doctor(capfd, "--fix")
    assert (code, told["findings"]) == (0, [])
    assert all(not any(secret in step for secret in secrets.values()) for step in told["steps"])
    assert holding(corpus, secrets) == []
    assert before - {file.name for file in (corpus / "runs").glob("*.parquet")}
    assert Answers(layout_of("corpus")).get("ada", "k2") == {"text": "other"}
    assert run(["sql", "SELECT DISTINCT error FROM runs WHERE error LIKE '%no *** here%'", "--json"]) == 0
    assert "no *** here" in capfd.readouterr().out
    assert doctor(capfd)[0] == 0


def test_file_that_gave_way_and_was_not_deleted_is_found_and_deleted(old_corpus, capfd, monkeypatch):
    """A repair may be killed between the commit and the deletion."""
    corpus = old_corpus / "corpus"
    kept = {file: file.read_bytes() for file in (corpus / "failures").glob("*.parquet")}
    monkeypatch.setenv("FORMER_API_KEY", OLD)
    assert doctor(capfd, "--fix")[0] == 0
    for file, content in kept.items():
        file.write_bytes(content)
    code, told = doctor(capfd)
    assert (code, [finding["check"] for finding in told["findings"] if finding["severity"] == "problem"]) == (
        1,
        ["secret"],
    )
    assert doctor(capfd, "--fix")[0] == 0
    assert not any(file.exists() for file in kept)


def test_forget_takes_secrets_out(old_corpus, capfd, monkeypatch):
    monkeypatch.setenv("FORMER_API_KEY", OLD)
    assert run(["forget", "--user", "nobody", "--yes"]) == 0
    assert "Secrets: mask the secrets in" in capfd.readouterr().out
    assert holding(old_corpus / "corpus", {"old": OLD}) == []
    assert doctor(capfd)[0] == 0


@pytest.mark.parametrize("answer", [embeddings, lambda _: Reply(200, {"object": "list"})], ids=["answers", "fails"])
def test_password_in_the_address_of_a_service_is_in_nothing_printed_or_written(desk, capfd, answer):
    """Credentials in a URL are sent as `Basic` authentication, and messages name the URL."""
    with EmbeddingServer(answer) as server:
        url = server.url.replace("://", f"://planter:{SECRETS['password']}@")
        settings(desk, url, DOCS)
        for command in COMMANDS:
            run([*command])
    printed = capfd.readouterr()
    (desk / "parquetry.toml").unlink()
    assert SECRETS["password"] not in printed.out + printed.err
    assert holding(desk, SECRETS) == []
