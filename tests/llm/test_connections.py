"""An endless or oversized response ends the request and does not exhaust the machine."""

import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from contextlib import contextmanager

import pytest

from parquetry.errors import TransientError
from parquetry.llm import connections as service_connections
from parquetry.llm.calls import Endpoint, RetryPolicy, open_client, with_retry

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LIMIT = 3 * 1024 * 1024


def drip(connection, piece=b" "):
    while True:
        connection.sendall(piece)
        time.sleep(0.02)


def slow_headers(connection):
    connection.sendall(HEAD + b"X: ")
    drip(connection, b"x")


def slow_body(connection):
    connection.sendall(HEAD + b"\r\n{")
    drip(connection)


def endless(connection):
    connection.sendall(HEAD + b"\r\n[")
    while True:
        connection.sendall(b" " * 100_000)


def packed(connection):
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(9, wbits=31)
    while True:
        connection.sendall(packer.compress(b" " * 10_000_000))


def otherwise_packed(connection):
    connection.sendall(HEAD + b"Content-Encoding: br\r\n\r\n")
    drip(connection)


def endless_failure(connection):
    connection.sendall(b"HTTP/1.1 500 Oh\r\n\r\n")
    while True:
        connection.sendall(b" " * 100_000)


def endless_redirect(connection):
    connection.sendall(b"HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\n\r\n")
    while True:
        connection.sendall(b" " * 100_000)


@contextmanager
def service(answer):
    """Serve the head of each request to a scripted responder until the test closes the server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(connection):
            with connection:
                try:
                    connection.recv(65_536)
                    answer(connection)
                except OSError:
                    pass

        def accept():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (slow_headers, "timeout", "in time"),
        (slow_body, "timeout", "in time"),
        (endless, "bad-reply", "replied with more than 3 MiB"),
        (packed, "bad-reply", "replied with more than 3 MiB"),
        (otherwise_packed, "bad-reply", "replied in br, which it was not asked for"),
        (endless_failure, "bad-reply", "replied with more than 3 MiB"),
        (endless_redirect, "bad-reply", "replied with more than 3 MiB"),
    ],
    ids=["slow-headers", "slow-body", "endless", "packed", "otherwise", "failure", "redirect"],
)
def test_reply_has_an_end_in_time_and_size(monkeypatch, answer, reason, words):
    monkeypatch.setattr(service_connections, "MAX_REPLY_BYTES", LIMIT)
    seconds = 0.5 if reason == "timeout" else 60
    with service(answer) as url:
        client = open_client(Endpoint(url, "key"), seconds)
        tracemalloc.start()
        try:
            with pytest.raises(TransientError) as raised:
                with_retry(lambda: client.models.list(), Endpoint(url, "key"), RetryPolicy(1))
            # The client keeps the pieces and joins them.
            assert tracemalloc.get_traced_memory()[1] < 5 * LIMIT
        finally:
            tracemalloc.stop()
    assert raised.value.reason == reason
    # The earlier of two limits: total time, or silence since the last byte.
    assert words in raised.value.detail.replace("took longer than 0.5 s (timeout_seconds)", "in time")


def test_packed_reply_is_read():
    reply = gzip.compress(b'{"object":"list","data":[]}')

    def answer(connection):
        connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(reply), reply))

    with service(answer) as url:
        client = open_client(Endpoint(url, "key"), 60)
        assert with_retry(lambda: client.models.list().data, Endpoint(url, "key"), RetryPolicy(1)) == []


@pytest.mark.parametrize("answer", [slow_headers, slow_body, endless])
def test_reply_that_is_streamed_has_an_end_too(monkeypatch, answer):
    monkeypatch.setattr(service_connections, "MAX_REPLY_BYTES", LIMIT)

    def read(client):
        with client.models.with_streaming_response.list() as response:
            for _ in response.iter_bytes():
                pass

    with service(answer) as url:
        client = open_client(Endpoint(url, "key"), 60 if answer is endless else 0.5)
        with pytest.raises(TransientError):
            with_retry(lambda: read(client), Endpoint(url, "key"), RetryPolicy(1))


def test_pause_between_requests_counts_for_none(monkeypatch):
    def answer(connection):
        for _ in range(2):
            connection.sendall(HEAD + b'Content-Length: 27\r\n\r\n{"object":"list","data":[]}')
            connection.recv(65_536)

    with service(answer) as url:
        client = open_client(Endpoint(url, "key"), 0.5)
        for _ in range(2):
            assert with_retry(lambda: client.models.list().data, Endpoint(url, "key"), RetryPolicy(1)) == []
            time.sleep(0.6)
