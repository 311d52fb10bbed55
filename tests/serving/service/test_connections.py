"""A connection that sends no request, or takes no answer, is closed; others have all the time that they need."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
import uvicorn

from parquetry.serving.service import connections
from parquetry.serving.service.connections import PatientProtocol

LARGE = b"x" * 50_000_000


async def application(scope, receive, send):
    """Answer with the body of the request, or with a large one."""
    if scope["type"] == "lifespan":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    answer = LARGE if scope["path"] == "/large" else body
    headers = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


@contextmanager
def connected(count=1):
    """Yield connections to a server, and the server."""
    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        log_config=None,
        lifespan="off",
        http=PatientProtocol,
        timeout_keep_alive=60,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    opened = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(count)]
    try:
        yield opened, server
    finally:
        for each in opened:
            each.close()
        server.should_exit = True
        thread.join(60)


def answer_of(connection):
    """Read an answer without a body."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        assert part, "closed without an answer"
        received += part
    return received


@pytest.fixture
def soon(monkeypatch):
    """Give up soon."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.3)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "], ids=["nothing", "line", "head"]
)
def test_request_that_does_not_arrive_is_given_up(soon, sent):
    with connected() as ((connection,), _):
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_head_that_trickles_in_is_given_up(soon):
    with connected() as ((connection,), _):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        connection.settimeout(0.02)
        with suppress(ConnectionError):
            for _ in range(3_000):
                connection.sendall(b"X-Slow: a\r\n")
                with suppress(TimeoutError):
                    assert connection.recv(1) == b""
                    return
            raise AssertionError("the connection is still open")


def test_second_request_of_a_connection_is_given_up_as_well(soon):
    with connected() as ((connection,), _):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200" in answer_of(connection)
        connection.sendall(b"GET")
        assert connection.recv(1) == b""


def test_body_has_more_time_than_its_head(soon):
    with connected() as ((connection,), _):
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1")
        time.sleep(0.6)
        connection.sendall(b"2")
        assert b" 200 " in answer_of(connection)


def test_answer_that_nobody_takes_is_given_up(soon):
    with connected() as ((connection,), server):
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        end = time.monotonic() + 60
        while server.server_state.total_requests == 0 or server.server_state.connections:
            assert time.monotonic() < end, "the connection is still held"
            time.sleep(0.02)


def test_answer_that_is_taken_slowly_arrives(soon):
    with connected() as ((connection,), _):
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        received = 0
        while received < len(LARGE):
            part = connection.recv(4_000_000)
            assert part, f"closed after {received:,} bytes"
            received += len(part)
            time.sleep(0.01)
