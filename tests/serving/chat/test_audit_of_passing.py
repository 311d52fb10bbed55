"""Each request that is passed on to the model service leaves one event: who, what, to whom, and what came of it."""

import json
import socket
import threading
import time

import pytest

from tests.servers.model_service import ModelService, failing, whole
from tests.serving.audited import events_from_now
from tests.serving.chat.conftest import proxy

OWN_KEY = "sk-own-key-of-the-service"
SECRET = "sk-the-callers-own-key-0123456789"


PASSED = [
    ("POST", "/v1/completions", "completions"),
    ("POST", "/v1/embeddings", "embeddings"),
    ("POST", "/v1/audio/speech", "audio/speech"),
    ("GET", "/v1/models/gpt-4o", "models/gpt-4o"),
    ("GET", "/v1/batches", "batches"),
    ("PUT", "/v1/things/1", "things/1"),
    ("PATCH", "/v1/things/1", "things/1"),
    ("DELETE", "/v1/models/m", "models/m"),
    ("POST", "/v1/unknown/path?key=in-the-query", "unknown/path"),
]


@pytest.mark.parametrize(("method", "path", "asked"), PASSED, ids=[f"{each[0]} {each[2]}" for each in PASSED])
@pytest.mark.parametrize("status", [200, 201, 404, 429, 500])
def test_a_request_that_is_passed_on_is_one_event(running, model, events, method, path, asked, status):
    model.rule = lambda _: whole({"object": "list", "data": []}, status)
    with running.app.client(running.tokens["root"]) as client:
        assert client.request(method, path, json={"model": "e5", "input": "a private text"}).status_code == status
    (event,) = events()
    (token,) = [each for each in running.app.resources.tokens.list() if each.name == "root"]
    assert (event["event"], event["status"], event["reason"]) == ("request.relayed", status, None)
    assert (event["token_id"], event["operator"], event["address"]) == (token.id, False, "127.0.0.1")
    assert (event["target"], event["upstream"]) == (f"{method} /v1/{asked}", running.service.base_url)
    assert event["milliseconds"] > 0


def test_callers_are_told_apart(running, model, events):
    model.rule = lambda _: whole({})
    tokens = running.tokens
    for key, headers in ((tokens["ada"], {}), (SECRET, {}), (SECRET, {"X-Parquetry-Token": tokens["eve"]}), (None, {})):
        with running.app.client(key, **headers) as client:
            assert client.post("/v1/completions", json={}).is_success
    told = [(each["user_id"], each["token_id"] is None, each["operator"]) for each in events(4)]
    assert told == [("ada", False, False), (None, True, False), ("eve", False, False), (None, True, True)]


def test_no_event_holds_a_secret_or_a_text(running, model, events):
    model.rule = lambda _: failing(400, f"the key {OWN_KEY} and {SECRET} are odd")
    headers = {"Cookie": "session=hidden", "X-Title": "hidden"}
    with running.app.client(SECRET, **headers) as client:
        client.post("/v1/completions?api_key=hidden", json={"prompt": "a hidden text"})
    with running.app.client(running.tokens["ada"]) as client:
        client.post("/v1/completions", json={"prompt": "a hidden text"})
    found = events(2)
    assert len(found) == 2
    told = json.dumps(found)
    for secret in ("hidden", OWN_KEY, SECRET, "pqt_", "api_key"):
        assert secret not in told


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (whole(b"", 302, Location="http://127.0.0.1:9/"), 502, "upstream-redirected"),
        (failing(401, "wrong key"), 502, "upstream-refused"),
        (failing(403, "wrong key"), 502, "upstream-refused"),
    ],
)
def test_an_answer_that_does_not_come_is_recorded_as_it_was_told(running, model, events, answer, status, reason):
    model.rule = lambda _: answer
    with running.app.client(running.tokens["ada"]) as client:
        assert client.post("/v1/completions", json={}).status_code == status
    (event,) = events()
    assert (event["event"], event["status"], event["reason"]) == ("request.relayed", status, reason)


def test_a_model_service_that_is_not_there_is_recorded(shelf):
    with ModelService() as service, proxy(shelf, service) as app, app.client(SECRET) as client:
        events = events_from_now(app.resources.state)
        service._server.socket.close()
        assert client.post("/v1/completions", json={}).status_code == 502
        (event,) = events()
        assert (event["status"], event["reason"]) == (502, "upstream-unreachable")
        assert event["upstream"] == service.base_url


def test_a_body_that_is_refused_while_it_goes_on_is_recorded(running, model, events):
    model.rule = lambda _: whole({})
    token = running.tokens["root"]
    pieces = iter([b"x" * 2_000_000, token.encode(), b"x" * 100])
    with running.app.client(SECRET) as client:
        assert client.post("/v1/audio/transcriptions", content=pieces).status_code == 400
    (event,) = events()
    assert (event["status"], event["reason"]) == (400, "token-would-leave")


def test_a_client_that_leaves_before_the_answer_is_recorded(running, model, events):
    recorded = threading.Event()

    def held(_):
        assert recorded.wait(60)
        return whole({})

    model.rule = held
    host, port = running.app.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(f"GET /v1/slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode())
        while not model.requests:
            time.sleep(0.01)
    (event,) = events()
    recorded.set()
    assert (event["status"], event["target"]) == (499, "GET /v1/slow")


def test_who_may_not_use_the_key_of_the_service_is_recorded_as_refused(running, model, events):
    with running.app.client(running.tokens["ada"]) as client:
        assert client.get("/v1/batches").status_code == 403
    (event,) = events()
    assert (event["event"], event["user_id"], event["status"]) == ("access.refused", "ada", 403)
    assert event["target"] == "GET /v1/batches"
    assert model.requests == []


def test_the_name_of_the_http_library_does_not_leave(running, model):
    model.rule = lambda _: whole({})
    host, port = running.app.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        head = f"GET /v1/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\nConnection: close\r\n\r\n"
        client.sendall(head.encode())
        while client.recv(65_536):
            pass
    names = {name.lower() for name, _ in model.requests[0].headers}
    assert names <= {"host", "authorization", "content-length"}, names
