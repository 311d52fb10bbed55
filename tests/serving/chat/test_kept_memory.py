"""A chat keeps only so much in memory: its client may read slowly, and the model service send without end."""

import json
import socket
import socketserver
import threading

import pytest

from parquetry.serving.chat.event_stream import EventBuffer
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.relay import StreamRelay
from tests.servers.model_service import DONE, ModelService, call_stream, chunk, said, streamed, usage_chunk
from tests.serving.chat.conftest import proxy

MEBIBYTE = 1024 * 1024
EVENT = chunk({"content": "x" * 60_000})
STREAM_BYTES = 192 * MEBIBYTE
"""far above the buffers of four sockets"""
BLOCKED_SECONDS = 5
"""time without progress after which the model service counts as held up; it only waits longer on a slow machine"""
OWN = frozenset({"search_knowledge"})


class Talker(socketserver.StreamRequestHandler):
    """A model service with an answer of 192 MiB."""

    def handle(self):
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length"):
                length = int(line.partition(b":")[2])
        self.rfile.read(length)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.connection.settimeout(BLOCKED_SECONDS)
        server, block = self.server, b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
        try:
            while server.sent < STREAM_BYTES:
                self.connection.sendall(block)
                server.sent += len(block)
        except TimeoutError:
            pass
        except OSError:
            server.gone.set()
            return
        server.stopped.set()
        # The proxy leaves when its client does.
        self.connection.settimeout(60)
        try:
            left = self.connection.recv(1) == b""
        except ConnectionError:
            # It leaves bytes unread.
            left = True
        if left:
            server.gone.set()


@pytest.fixture
def talker():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talker) as server:
        server.sent, server.stopped, server.gone = 0, threading.Event(), threading.Event()
        server.daemon_threads = True
        server.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{}, {"rag_top_k": 0, "rag_enable_tools": False}], ids=["with tools", "relayed"])
def test_a_client_that_does_not_read_holds_up_the_model_service(shelf, talker, fields):
    with proxy(shelf, talker) as app:
        host, port = app.url.removeprefix("http://").split(":")
        body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go on."}], **fields})
        with socket.create_connection((host, int(port)), timeout=60) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body.encode())
            assert client.recv(12) == b"HTTP/1.1 200"
            assert talker.stopped.wait(120)
            assert talker.sent < STREAM_BYTES // 3
        assert talker.gone.wait(60)


def relay(own=OWN, most=1000):
    return StreamRelay(own, frozenset(), list, own_key=False, most_kept=most)


def fed(relay, answer):
    return b"".join(relay.feed(event) for event in EventBuffer().feed(b"".join(answer.pieces)))


def test_text_has_no_limit_but_only_so_much_is_kept_for_a_call():
    long = streamed(*[chunk({"content": "x" * 400})] * 5, chunk(finish="stop"))
    whole = relay()
    assert fed(whole, long).count(b"x" * 400) == 5
    assert whole.next_calls() is None
    assert whole.finish().endswith(DONE)
    asked = call_stream({"id": "c1", "function": {"name": "search_knowledge", "arguments": "{}"}})
    calling = relay()
    fed(calling, streamed(*long.pieces[:-2], *asked.pieces[:-1]))
    assert calling._text == []
    with pytest.raises(UpstreamFailed, match=r"after more than 1\.0 kB of text"):
        calling.next_calls()


def test_what_follows_the_end_of_an_answer_is_bounded():
    ended = relay()
    fed(ended, streamed(chunk({"content": "x"}), chunk(finish="stop"), done=False))
    with pytest.raises(UpstreamFailed, match="too much after the end"):
        fed(ended, streamed(*[usage_chunk()] * 20))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_response_has_a_limit_because_it_is_kept_whole(shelf, stream):
    answer = streamed(*[chunk({"content": "x" * 400})] * 5, chunk(finish="stop")) if stream else said("x" * 2000)
    with ModelService(answer) as service, proxy(shelf, service, upstream={"max_answer_bytes": 1500}) as app:
        token = app.resources.tokens.create("long", rights=["search"])[1]
        with app.client(token) as client:
            asked = {"model": "m", "input": "Go on.", "store": False, "stream": stream}
            response = client.post("/v1/responses", json=asked)
    if stream:
        last = json.loads(response.text.strip().splitlines()[-1].removeprefix("data: "))
        assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
        assert "larger than" in last["response"]["error"]["message"]
    else:
        assert response.status_code == 502
        assert "larger than" in response.json()["error"]["message"]
