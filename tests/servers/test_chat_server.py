"""The scripted chat server: an unexpected request fails the test, even if the program handles the error reply."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest

from tests.servers.chat_server import ChatServer, said, without_schemas


def ask(server: ChatServer, body: Any = None, path: str = "/chat/completions") -> int:
    """Return the status of an answer."""
    request = urllib.request.Request(server.url + path, json.dumps(body or {}).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as failed:
        with failed:
            return failed.code


def test_a_script_is_played_in_order():
    with ChatServer([said("a"), said("b")]) as server:
        assert [ask(server), ask(server)] == [200, 200]


def test_a_rule_answers_each_question():
    with ChatServer(lambda body: said(body["q"])) as server:
        assert ask(server, {"q": "x"}) == 200
    assert server.bodies == [{"q": "x"}]


@pytest.mark.parametrize(
    ("replies", "path"),
    [
        pytest.param([], "/chat/completions", id="beyond the script"),
        pytest.param([], "/embeddings", id="another path"),
        pytest.param(lambda _: None, "/chat/completions", id="no rule for it"),
        pytest.param(lambda body: said(body["missing"]), "/chat/completions", id="a rule that fails"),
    ],
)
def test_what_no_test_foresaw_ends_with_an_error(replies, path):
    def play() -> None:
        with ChatServer(replies) as server:
            assert ask(server, path=path) == 500

    with pytest.raises(AssertionError, match="unscripted"):
        play()


def test_a_script_that_is_not_played_to_its_end_is_an_error():
    def play() -> None:
        with ChatServer([said("a"), said("b")]) as server:
            ask(server)

    with pytest.raises(AssertionError, match="never asked for: 1"):
        play()


def test_a_service_may_know_no_schemas():
    with ChatServer(without_schemas(lambda _: said("a"))) as server:
        assert ask(server, {"response_format": {"type": "json_schema"}}) == 400
        assert ask(server, {"response_format": {"type": "json_object"}}) == 200


def test_question_that_was_cut_because_its_program_was_killed_is_no_question():
    with ChatServer(lambda body: said(body["q"])) as server:
        where = urllib.parse.urlsplit(server.url)
        with socket.create_connection((where.hostname, where.port)) as connection:
            connection.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"q": ')
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert server.bodies == []
