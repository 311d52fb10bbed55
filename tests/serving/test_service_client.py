"""Requests to a service: tries again for reads alone, and our own errors for every answer."""

import socket

import pytest

from parquetry.errors import (
    BrokenDocument,
    DiskFull,
    OutageError,
    PagesGone,
    PublishConflict,
    RefusedError,
    ServiceRefused,
    SettingsError,
    SkippedDocument,
    StorageError,
    TransientError,
)
from parquetry.serving import service_client
from parquetry.serving.service_client import ATTEMPTS, ServiceClient
from tests.servers.scripted_service import Scripted, ScriptedService

TOKEN = "pqt_abcdefghijklmnop"


@pytest.fixture
def client():
    """Return a function that opens a client of a service."""
    opened = []

    def of(service, token=None, timeout=10.0):
        opened.append(ServiceClient(service.url, token, timeout))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


@pytest.fixture
def no_pauses(monkeypatch):
    """Note the pauses instead of waiting."""
    pauses = []
    monkeypatch.setattr(service_client, "sleep", pauses.append)
    return pauses


def problem(reason, detail="do this", **more):
    return {"title": "Problem", "detail": detail, "reason": reason, **more}


def test_token_is_sent_and_json_is_returned(client):
    with ScriptedService(Scripted("GET", "/a?limit=1", {"x": 1})) as service:
        assert client(service, TOKEN).read("GET", "/a", params={"limit": 1}) == {"x": 1}
        assert service.headers[0]["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("status", "body", "kind", "reason"),
    [
        (401, problem("token-unknown"), ServiceRefused, "token-unknown"),
        (403, problem("right-missing"), ServiceRefused, "right-missing"),
        (404, problem("no-such-document"), SettingsError, "no-such-document"),
        (409, problem("refused"), RefusedError, "refused"),
        (410, problem("pages-gone"), PagesGone, "pages-gone"),
        (413, problem("too-large"), SkippedDocument, "too-large"),
        (422, problem("invalid-request"), SettingsError, "invalid-request"),
        (422, problem("pages-gone"), PagesGone, "pages-gone"),
        (422, problem("damaged", job_id="job-1", documents=[{}]), BrokenDocument, "damaged"),
        (422, problem("empty", job_id="job-1", documents=[{}]), SkippedDocument, "empty"),
        (422, problem("settings", job_id="job-1"), SettingsError, "settings"),
        (422, problem("budget", job_id="job-1", documents={"added": 1}), RefusedError, "budget"),
        (422, problem("disk-full", job_id="job-1"), DiskFull, "disk-full"),
        (502, problem("outage", job_id="job-1"), OutageError, "outage"),
        (503, problem("conflict"), PublishConflict, "conflict"),
        (500, problem("unexpected"), StorageError, "unexpected"),
        (501, problem("no-language-model"), SettingsError, "no-language-model"),
        (302, b"", SettingsError, "http-302"),
        (404, b"<html>not ours</html>", SettingsError, "http-404"),
        (404, b"[1]", SettingsError, "http-404"),
        (599, b"", StorageError, "http-599"),
    ],
)
def test_every_status_is_an_error_of_its_own_kind(client, status, body, kind, reason):
    with ScriptedService(Scripted("GET", "/a", body, status)) as service, pytest.raises(kind) as raised:
        client(service).read("GET", "/a")
    assert type(raised.value) is kind
    assert raised.value.reason == reason
    if isinstance(body, dict):
        assert "do this" in str(raised.value)


def test_reads_are_tried_again(client, no_pauses):
    script = [Scripted("GET", "/a", problem("not-ready"), 503) for _ in range(2)]
    busy = Scripted("GET", "/a", problem("rate-limited"), 429, {"Retry-After": "3"})
    with ScriptedService(*script, busy, Scripted("GET", "/a", {"x": 1})) as service:
        assert client(service).read("GET", "/a") == {"x": 1}
    assert len(no_pauses) == ATTEMPTS - 1
    assert 0.1 < no_pauses[0] < no_pauses[1] < 1
    assert no_pauses[2] == 3


def test_reads_end_after_a_few_tries(client, no_pauses):
    script = [Scripted("POST", "/a", problem("not-ready"), 503) for _ in range(ATTEMPTS)]
    with ScriptedService(*script) as service, pytest.raises(TransientError) as raised:
        client(service).read("POST", "/a", json={})
    assert raised.value.reason == "not-ready"


def test_long_wait_is_left_to_the_caller(client, no_pauses):
    busy = Scripted("GET", "/a", problem("rate-limited"), 429, {"Retry-After": "3600"})
    with ScriptedService(busy) as service, pytest.raises(TransientError) as raised:
        client(service).read("GET", "/a")
    assert (raised.value.retry_after, no_pauses) == (3600, [])


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_writes_are_sent_once(client, status):
    """A second try could do a second time what the first one did."""
    with ScriptedService(Scripted("POST", "/a", problem("busy"), status)) as service, pytest.raises(TransientError):
        client(service).write("POST", "/a", json={})
    assert len(service.requests) == 1


def test_service_that_is_not_there_is_told(client, no_pauses):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    nowhere = ServiceClient(url, None, 5)
    with pytest.raises(TransientError, match="cannot be reached") as raised:
        nowhere.read("GET", "/a")
    assert (raised.value.reason, len(no_pauses)) == ("unreachable", ATTEMPTS - 1)
    nowhere.close()


def test_slow_answer_is_given_up(client):
    with ScriptedService(Scripted("POST", "/a", {}, seconds=1)) as service, pytest.raises(TransientError) as raised:
        client(service, timeout=0.2).write("POST", "/a")
    assert raised.value.reason == "timeout"


def test_answer_without_json_is_not_ours(client):
    with (
        ScriptedService(Scripted("GET", "/a", b"<html>")) as service,
        pytest.raises(StorageError, match="without JSON"),
    ):
        client(service).read("GET", "/a")


@pytest.mark.parametrize("address", ["http://", "http://u:p@host", "http://host/?a=1", "http://host:x"])
def test_wrong_address_is_refused_without_its_secrets(address):
    with pytest.raises(SettingsError) as refused:
        ServiceClient(address, None, 1)
    assert "u:p" not in str(refused.value)


@pytest.mark.parametrize("token", ["", "pqt_a b", "pqt_a\n", "pqt_ü"])
def test_wrong_token_is_refused_without_being_repeated(token):
    with pytest.raises(SettingsError, match="the token is not one") as refused:
        ServiceClient("http://127.0.0.1:1", token, 1)
    assert not token or token not in str(refused.value)
