"""Failures of a model service are told in OpenAI's form, and never as an empty success."""

import json
import socket
import threading
import time

import pytest

from parquetry.serving.chat.loop import MOST_ROUNDS
from tests.servers.model_service import (
    DONE,
    ModelAnswer,
    ModelService,
    call,
    call_stream,
    chunk,
    cut,
    event,
    failing,
    said,
    silent,
    streamed,
    text_stream,
    whole,
)
from tests.serving.chat.conftest import proxy
from tests.serving.chat.events import error_of

OWN_KEY = "sk-own-key-of-the-service"
STREAM = text_stream("Thirty days of holiday")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (failing(429, "slow down", code="rate_limit_exceeded"), 429, "rate_limit_exceeded"),
        (failing(400, "too long", code="context_length_exceeded"), 400, "context_length_exceeded"),
        (failing(401, "wrong key", code="invalid_api_key"), 401, "invalid_api_key"),
        (whole({"detail": "Not Found"}, 404), 404, "not_found"),
        (whole(b"<html>Bad gateway</html>", 502), 502, "upstream_failed"),
        (whole(b"", 503), 503, "upstream_failed"),
        (whole({"error": "loading the model"}, 529), 502, "upstream_failed"),
        (whole(b"{", 200), 502, "upstream_broken"),
        (whole(b"[]", 200), 502, "upstream_broken"),
        (whole({"choices": []}), 502, "upstream_broken"),
        (whole({"choices": [{"message": None}]}), 502, "upstream_broken"),
        (whole(b"", 204), 502, "upstream_broken"),
        (whole(b"", 302, Location="http://127.0.0.1:1/stolen"), 502, "upstream_redirected"),
        (whole(b"", 307, Location="/v1/elsewhere"), 502, "upstream_redirected"),
        (ModelAnswer((b"220 mail.example ESMTP\r\n",), raw=True), 502, "upstream_broken"),
        (ModelAnswer((), raw=True), 502, "upstream_cut"),
        (cut(said("x"), 1), 502, "upstream_cut"),
    ],
)  # fmt: skip
def test_failure_before_an_answer_has_a_status_of_its_own(ask, model, stream, answer, status, code):
    if stream and answer.status == 200 and not answer.raw:
        # What comes instead of a stream is unusable, whatever it is.
        code = "upstream_broken"
    model.expect(answer)
    error_of(ask(stream=stream), status, code)
    assert len(model.requests) == 1


def test_time_to_wait_is_passed_on(ask, model):
    model.expect(whole({"error": {"message": "slow down"}}, 429, Retry_After="17"))
    assert ask().headers["retry-after"] == "17"


def test_error_in_an_answer_of_200_is_one(ask, model):
    model.expect(whole({"error": {"message": "no credit", "code": "insufficient_quota"}}))
    assert error_of(ask(), 502, "insufficient_quota") == "no credit"


def test_refused_key_of_the_service_is_no_fault_of_the_caller(ask, model):
    model.expect(failing(401, f"Incorrect API key provided: {OWN_KEY}", code="invalid_api_key"))
    message = error_of(ask(token="ada"), 502, "upstream_refused")
    assert OWN_KEY not in message
    model.expect(failing(400, f"the key {OWN_KEY} is odd"))
    assert OWN_KEY not in ask(token="ada").text


def broken_off(response):
    """Return the error in the last event of a stream that broke off, and the text before it."""
    assert response.status_code == 200
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    assert lines[-1] != "[DONE]"
    assert not any("rag_sources" in each for each in events)
    text = "".join(each["choices"][0]["delta"].get("content") or "" for each in events[:-1])
    return events[-1]["error"], text


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (cut(STREAM, 3), "upstream_cut", "Thirty days"),
        (streamed(*STREAM.pieces[:3], done=False), "upstream_cut", "Thirty days"),
        (streamed(*STREAM.pieces[:3], b'data: {"choi', done=False), "upstream_broken", "Thirty days"),
        (streamed(*STREAM.pieces[:3], b"data: garbage\n\n"), "upstream_broken", "Thirty days"),
        (streamed(*STREAM.pieces[:3], b"data: [1]\n\n"), "upstream_broken", "Thirty days"),
        (streamed(*STREAM.pieces[:2], event({"error": {"message": "out of memory", "code": "oom"}})), "oom", "Thirty"),
        (streamed(), "upstream_broken", ""),
        (streamed(done=False), "upstream_cut", ""),
        (streamed(event({"choices": []})), "upstream_broken", ""),
        (streamed(STREAM.pieces[1] + b"data: garbage\n\n"), "upstream_broken", "Thirty"),
    ],
    ids=["cut", "ended", "cut in an event", "garbage", "a list", "error", "nothing", "empty", "no choice", "together"],
)
def test_failure_in_the_middle_is_the_last_event(ask, model, answer, code, text):
    model.expect(answer)
    response = ask(stream=True)
    if code == "upstream_broken" and text == "":
        lines = response.text.strip().splitlines()
        assert json.loads(lines[-1].removeprefix("data: "))["error"]["code"] == code
        return
    error, said_before = broken_off(response)
    # What arrives together with the end of a connection that breaks may be lost with it.
    assert error["code"] == code
    assert text.startswith(said_before) if code == "upstream_cut" else said_before == text
    assert set(error) >= {"message", "type", "param", "code"}


def test_silence_is_a_failure(shelf):
    with (
        ModelService(silent(STREAM, 2), silent(said("x"), 0)) as service,
        proxy(shelf, service, upstream={"silence_seconds": 0.3}) as app,
        app.client("sk-foreign") as client,
    ):
        sent = {"model": "m", "messages": [{"role": "user", "content": "holiday?"}]}
        error, text = broken_off(client.post("/v1/chat/completions", json={**sent, "stream": True}))
        assert (error["code"], text) == ("upstream_timeout", "Thirty")
        error_of(client.post("/v1/chat/completions", json=sent), 504, "upstream_timeout")


def test_model_service_that_is_not_there_is_told(shelf):
    with ModelService() as service, proxy(shelf, service) as app, app.client("sk-foreign") as client:
        service._server.socket.close()
        sent = {"model": "m", "messages": [{"role": "user", "content": "holiday?"}]}
        for path, body in (("chat/completions", sent), ("completions", {})):
            message = error_of(client.post(f"/v1/{path}", json=body), 502, "upstream_unreachable")
            assert str(service.port) not in message
        error_of(client.get("/v1/models"), 502, "upstream_unreachable")


def test_without_a_model_service_all_but_the_own_models_says_so(shelf):
    with (
        ModelService() as service,
        proxy(shelf, service, upstream={"base_url": None}) as app,
        app.client("sk-foreign") as client,
    ):
        sent = {"model": "m", "messages": [{"role": "user", "content": "holiday?"}]}
        message = error_of(client.post("/v1/chat/completions", json=sent), 501, "no_upstream")
        assert "--upstream" in message
        error_of(client.post("/v1/completions", json={}), 501, "no_upstream")
        assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["wordllama"]
        error_of(client.get("/v1/models/gpt-4o"), 404, "model_not_found")
        error_of(client.post("/v1/embeddings", json={"model": "e", "input": "x"}), 404, "model_not_found")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": NaN}', b"[" * 100_000, b"\xff"])
def test_body_that_is_no_json_is_refused(running, model, content):
    with running.app.client("sk-foreign") as client:
        headers = {"Content-Type": "application/json"}
        error_of(client.post("/v1/chat/completions", content=content, headers=headers), 400, "invalid_request")


# --- clients that leave


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_client_that_leaves_ends_the_request_upstream(running, model, stream):
    model.expect(silent(STREAM if stream else said("x"), 2 if stream else 0))
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "holiday?"}]}).encode()
    host, port = running.app.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-x\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        if stream:
            received = b""
            while b"Thirty" not in received:
                received += client.recv(4096)
        else:
            while not model.requests:
                time.sleep(0.01)
    assert model.gone.wait(120)


def test_client_that_leaves_a_request_that_is_passed_on_ends_it(running, model):
    model.rule = lambda asked: silent(whole({}), 0)
    host, port = running.app.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(b"GET /v1/slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-x\r\n\r\n")
        while not model.requests:
            time.sleep(0.01)
    assert model.gone.wait(120)


def test_tokens_arrive_as_they_are_said(running, model):
    step = threading.Semaphore(0)
    pieces = (*STREAM.pieces[:-1], DONE)
    model.expect(ModelAnswer(pieces, headers={"Content-Type": "text/event-stream"}, step=step))
    with running.app.client("sk-foreign") as client:
        sent = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "holiday?"}]}
        step.release()
        with client.stream("POST", "/v1/chat/completions", json=sent) as response:
            received = response.iter_raw()
            assert next(received) == pieces[0]
            for piece in pieces[1:-2]:
                step.release()
                assert next(received) == piece
            step.release(2)
            rest = b"".join(received)
    assert b"rag_sources" in rest
    assert rest.endswith(DONE)


# --- the loop


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_model_that_never_stops_calling_is_stopped(ask, model, stream):
    again = call("search_knowledge", query="holiday")
    answers = [call_stream(again) if stream else said(None, [again]) for _ in range(MOST_ROUNDS + 1)]
    model.expect(*answers)
    response = ask(stream=stream)
    assert len(model.requests) == MOST_ROUNDS + 1
    assert [each.body.get("tool_choice") for each in model.requests] == [None] * MOST_ROUNDS + ["none"]
    if stream:
        assert broken_off(response)[0]["code"] == "upstream_broken"
    else:
        error_of(response, 502, "upstream_broken")


def test_failure_between_rounds_is_told_in_the_stream(ask, model):
    model.expect(
        call_stream(call("search_knowledge", query="oak"), text="Let me see."), failing(503, "busy", code="busy")
    )
    error, text = broken_off(ask(stream=True))
    assert (error["code"], text) == ("busy", "Let me see.")


def test_headers_of_the_model_service_that_concern_browsers_do_not_come(ask, model):
    more = {"Set_Cookie": "a=b", "Access_Control_Allow_Origin": "*", "Openai_Processing_Ms": "7", "X_Request_Id": "r1"}
    model.expect(
        ModelAnswer(
            STREAM.pieces,
            headers={"Content-Type": "text/event-stream", **{k.replace("_", "-"): v for k, v in more.items()}},
        )
    )
    headers = ask(stream=True).headers
    assert headers["x-request-id"] == "r1"
    assert headers["openai-processing-ms"] == "7"
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers
    assert chunk()
