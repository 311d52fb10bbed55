"""Servers that are slow, lie, or send more than fits in memory."""

import gzip
import threading
import time
import zlib

import pytest

from parquetry.decompress import inflate
from parquetry.errors import BrokenDocument, SkippedDocument, TransientError
from parquetry.net.client import GuardedClient
from parquetry.net.ssrf import parse_allowed
from tests.servers.web_server import Page, RawServer, WebServer

LIMIT = 100_000


def client(server, *, seconds=10.0, max_bytes=LIMIT):
    return GuardedClient(parse_allowed([server.place]), user_agent="test/1", max_bytes=max_bytes, seconds=seconds)


def read(server, path="/", **options):
    with client(server, **options).get(server.url + path) as answer:
        return answer.read()


def playing(*pieces):
    def play(connection):
        for piece in pieces:
            connection.sendall(piece)

    return play


def endless(head, piece):
    def play(connection):
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return play


def drip(head, piece, gone):
    """Send one small piece after another for as long as the client listens."""

    def play(connection):
        connection.sendall(head)
        while not gone.wait(0.02):
            connection.sendall(piece)

    return play


def test_page_is_read_and_the_client_says_who_it_is():
    with WebServer({"/a?b=c": Page("text", etag='"1"')}) as server:
        with client(server).get(f"{server.url}/a?b=c#part") as answer:
            assert (answer.status, answer.read(), answer.headers["etag"]) == (200, b"text", '"1"')
        (asked,) = server.asked
    assert (asked.path, asked.headers["Host"], asked.headers["User-Agent"]) == ("/a?b=c", server.place, "test/1")


def test_compressed_page_is_unpacked():
    body = gzip.compress(b"first ") + gzip.compress(b"second") + bytes(8)
    with WebServer({"/": Page(body, headers={"Content-Encoding": "gzip"})}) as server:
        assert read(server) == b"first second"


@pytest.mark.parametrize("size", [1, 7, 65_536, 1 << 20])
@pytest.mark.parametrize("lengths", [(0,), (65_536,), (131_072, 65_536), (5, 0, 70_000)], ids=str)
def test_compressed_content_is_the_same_however_it_is_cut(size, lengths):
    members = [bytes([index]) * length for index, length in enumerate(lengths)]
    packed = b"".join(gzip.compress(member) for member in members) + bytes(3)
    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert b"".join(inflate(pieces, 1 << 20, "it")) == b"".join(members)
    with pytest.raises(TransientError, match="in the middle"):
        list(inflate([gzip.compress(b"x" * 99)[:-1]], 1 << 20, "it"))


@pytest.mark.parametrize(
    "play",
    [
        endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 4096),
        endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        playing(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x"),
        playing(b"HTTP/1.1 200 OK\r\n\r\n", bytes(LIMIT + 300_000)),
    ],
    ids=["endless", "endless-chunks", "announced", "unannounced"],
)
def test_body_beyond_the_limit_is_refused(play):
    with RawServer(play) as server, pytest.raises(SkippedDocument, match=r"more than 100000 bytes \(max_bytes\)"):
        read(server)


def test_body_that_unpacks_beyond_the_limit_is_refused():
    bomb = gzip.compress(bytes(LIMIT * 800), 9)
    assert len(bomb) < LIMIT
    headers = {"Content-Encoding": "gzip"}
    with WebServer({"/": Page(bomb, headers=headers)}) as server, pytest.raises(SkippedDocument) as raised:
        read(server)
    assert raised.value.reason == "too-large"
    assert "once unpacked" in raised.value.detail


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({"Content-Encoding": "gzip"}, b"this is not gzip", "damaged"),
        ({"Content-Encoding": "br"}, b"\x0b\x02\x80text\x03", "unsupported-encoding"),
        ({"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"x")), "unsupported-encoding"),
        ({"Content-Encoding": "deflate"}, zlib.compress(b"x"), "unsupported-encoding"),
    ],
    ids=["no-gzip", "brotli", "gzip-twice", "deflate"],
)
def test_body_in_an_encoding_that_is_not_what_was_asked_for_is_refused(headers, body, reason):
    with WebServer({"/": Page(body, headers=headers)}) as server, pytest.raises(BrokenDocument) as raised:
        read(server)
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("play", "reason"),
    [
        (playing(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"only this"), "connection"),
        (playing(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"ff\r\nonly this"), "connection"),
        (playing(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(b"x" * 999)[:20]), "truncated"),
        (playing(b""), "connection"),
        (playing(b"SSH-2.0-OpenSSH_9.6\r\n"), "connection"),
        (playing(b"HTTP/1.1 200 OK\r\n", b"X-Junk: " + b"j" * 200_000), "connection"),
        (playing(b"HTTP/1.1 abc\r\n\r\n"), "connection"),
        (playing(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nxxxxx"), "connection"),
    ],
    ids=["short", "short-chunk", "short-gzip", "nothing", "ssh", "huge-head", "no-status", "negative-length"],
)
def test_answer_that_breaks_off_or_makes_no_sense_may_be_asked_for_again(play, reason):
    with RawServer(play) as server, pytest.raises(TransientError) as raised:
        read(server)
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"x"),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["body", "headers", "header", "informational", "chunks"],
)
def test_server_that_drips_is_given_up_when_the_time_for_all_is_over(head, piece):
    gone = threading.Event()
    with RawServer(drip(head, piece, gone)) as server:
        try:
            with pytest.raises(TransientError, match=r"took longer than 0\.4 s \(timeout_seconds\)") as raised:
                read(server, seconds=0.4)
        finally:
            gone.set()
    assert raised.value.reason == "timeout"


def test_server_that_says_nothing_is_given_up():
    with RawServer() as server, pytest.raises(TransientError) as raised:
        read(server, seconds=0.3)
    assert raised.value.reason == "timeout"


def test_redirects_share_the_time_of_one_exchange():
    gone = threading.Event()

    def play(connection):
        gone.wait(0.15)
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /on\r\nContent-Length: 0\r\n\r\n")

    with RawServer(play) as server:
        try:
            with pytest.raises(TransientError) as raised:
                read(server, seconds=0.4)
        finally:
            gone.set()
    assert (raised.value.reason, server.connections < 6) == ("timeout", True)


def test_waiting_for_ones_turn_does_not_count_as_time_of_the_server():
    with WebServer({"/": Page("text")}) as server:
        polite = client(server, seconds=0.3).with_before(lambda url: time.sleep(0.4))
        with polite.get(server.url) as answer:
            assert answer.read() == b"text"


def test_server_that_is_not_there_is_unreachable():
    with RawServer() as server:
        place = client(server)
        url = server.url
    with pytest.raises(TransientError) as raised, place.get(url):
        pass
    assert raised.value.reason == "unreachable"
