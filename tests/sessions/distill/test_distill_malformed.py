"""Hundreds of malformed replies through real HTTP and the real client: nothing crashes, nothing is learned from them.

The server repeats the same reply for every request. The reply is discarded with a reason, or the service counts as
failed, so that a later run reads the session again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from parquetry.errors import TransientError
from parquetry.sessions.distill.replies import QUARANTINED
from tests.servers.chat_server import NEVER, ChatServer, Reply, busy, cut, error, huge, said, shortened, without_schemas
from tests.sessions.asking import DirectAsker, learned, proposal

pytestmark = pytest.mark.slow

ENTRIES = {"entries": [proposal('Kiln 3 dries "walnut" {always}.')]}
GOOD = json.dumps(ENTRIES)
USELESS = {"bad-reply", "reply-cut", "input-rejected"}
FAILED = {"service-failed", "rate-limited", "unreachable", "timeout"}
VALUES: list[Any] = [None, True, 0, -1, 2, 1e400, "", "x", "0.9", [], [[]], [1], [None], {}, {"a": 1}, [{"text": 1}]]


@dataclass
class Saying:
    """A server that gives the same scripted reply to every request."""

    server: ChatServer
    llm: DirectAsker
    replies: list[Reply]


@pytest.fixture(scope="module")
def saying() -> Iterator[Saying]:
    replies: list[Reply] = []
    with ChatServer(lambda _: replies[-1]) as server:
        yield Saying(server, DirectAsker(server), replies)


def outcome(saying: Saying, reply: Reply, llm: DirectAsker | None = None) -> str:
    """Return the reason for learning nothing."""
    saying.replies.append(reply)
    try:
        found = learned(llm or saying.llm)
    except TransientError as failed:
        return failed.reason
    assert found.drafts == (), reply
    (refusal,) = found.refusals
    assert refusal.quarantined
    assert refusal.detail
    assert "\n" not in refusal.detail
    assert len(refusal.text) <= QUARANTINED
    refusal.text.encode("utf-8")
    return refusal.reason


def changed(path: list[str | int], value: Any) -> str:
    """Return the good reply with one value replaced, or removed if the value is `...`."""
    reply: Any = json.loads(GOOD)
    inner = reply
    for step in path[:-1]:
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(reply)


def cut_texts() -> Iterator[Reply]:
    for length in range(1, len(GOOD)):
        yield said(GOOD[:length], finish="length")


def cut_bodies() -> Iterator[Reply]:
    whole = said(GOOD)
    for length in range(0, len(whole.raw) - 1, 9):
        yield shortened(whole, length)


def cut_lines() -> Iterator[Reply]:
    whole = said(GOOD)
    for length in range(0, len(whole.raw) - 1, 40):
        yield cut(whole, length)


def wrong_types() -> Iterator[Reply]:
    for field in ("text", "kind", "level", "confidence", "evidence"):
        yield said(changed(["entries", 0, field], ...))
        for value in VALUES:
            yield said(changed(["entries", 0, field], value))
    for value in VALUES:
        yield said(changed(["entries"], value))
        yield said(changed(["entries", 0], value))
        yield said(json.dumps(value))
        yield said(json.dumps([value, value]))


def garbage() -> Iterator[Reply]:
    """Return nested values, letters of every script, and the good reply with some of its letters changed."""
    draw = random.Random(20261122)

    def value(depth: int) -> Any:
        if depth == 0 or draw.random() < 0.2:
            return draw.choice(VALUES[:8])
        if draw.random() < 0.5:
            return [value(depth - 1) for _ in range(draw.randint(0, 4))]
        keys = ["entries", "text", "kind", "evidence", "\u202e", "", "𝕜"]
        return {draw.choice(keys): value(depth - 1) for _ in range(draw.randint(0, 4))}

    for _ in range(60):
        yield said(json.dumps(value(6)))
        yield said("".join(chr(draw.choice([*range(32, 127), 0x202E, 0xFFFF, 0x1F600, 0])) for _ in range(80)))
    for _ in range(120):
        letters = list(GOOD)
        for _ in range(draw.randint(1, 4)):
            letters[draw.randrange(len(letters))] = draw.choice('{}[]",:\\0x\n')
        yield said("".join(letters))


def wrapped() -> Iterator[Reply]:
    for around in ("{} and {}", "[{}]", "{{{}", "```json\n{}\n```\n```json\n{}\n```"):
        yield said(around.format(GOOD, GOOD))
        yield said(f"Here you are: {around.format(GOOD, GOOD)} I hope that it helps.")
    yield said(f"<think>{GOOD}")
    yield said(GOOD[:-1] + ",}")
    yield said(GOOD.replace('"', "'"))
    yield said("I found nothing worth keeping in this session.")
    yield said("null")
    yield said('{"entries": "' + "[" * 90_000)
    yield said('{"entries":' * 9_000)


def no_answers() -> Iterator[Reply]:
    yield said(None)
    yield said(" \n ")
    yield said("", finish="length")
    yield said(None, refusal="I cannot help with that")
    yield said(GOOD, refusal="I cannot help with that")
    yield said(GOOD, finish="content_filter")
    for body in (
        None,
        [],
        {},
        "x",
        1,
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"message": {"content": [GOOD]}}]},
    ):
        yield Reply(200, body)
    for raw in (b"", b"\x00", b"\xff\xfe{", b"<html>", b"data: {}\n\n", b'{"choices":' * 9_000):
        yield Reply(200, raw)
    yield Reply(200, said(GOOD).raw, {"Content-Encoding": "gzip"})
    for status in (400, 413, 422, 408, 409, 425, 500, 502, 503, 504, 529):
        yield error(status, "something went wrong")
    yield Reply(500, b"\xff")
    yield busy(3)
    yield huge(10_000_000)
    yield huge(1_500_000)


CLASSES: dict[str, Callable[[], Iterator[Reply]]] = {
    "the text is cut at every letter": cut_texts,
    "the body is cut": cut_bodies,
    "the line is cut": cut_lines,
    "a value of another type in every place": wrong_types,
    "garbage": garbage,
    "something around it": wrapped,
    "no answer": no_answers,
}


def is_fine(reply: Reply) -> bool:
    """Return True if a generated reply happens to be a good one, judged without the program."""
    try:
        choice = reply.body["choices"][0]
        entries = json.loads(choice["message"]["content"])["entries"]
        declined = choice["finish_reason"] == "content_filter" or choice["message"]["refusal"]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return False
    return not declined and isinstance(entries, list) and all(map(is_fine_entry, entries))


def is_fine_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not set(proposal()) <= set(entry):
        return False
    sure, evidence = entry["confidence"], entry["evidence"]
    return (
        isinstance(entry["text"], str)
        and entry["kind"] in ("methodology", "preference", "tool", "lesson", "fact")
        and entry["level"] in ("public", "organization", "individual")
        and (type(sure) in (int, float) and 0 <= sure <= 1)
        and (isinstance(evidence, list) and all(isinstance(each, str) for each in evidence))
    )


def malformed(name: str) -> list[Reply]:
    return [reply for reply in CLASSES[name]() if reply.sent is not None or not is_fine(reply)]


@pytest.mark.parametrize("name", CLASSES)
def test_nothing_is_learned_from_a_malformed_reply(saying: Saying, name: str):
    reasons = {outcome(saying, reply) for reply in malformed(name)}
    assert reasons <= USELESS | FAILED
    if name in {"a value of another type in every place", "garbage"}:
        assert reasons == {"bad-reply"}
    if name == "the text is cut at every letter":
        assert reasons == {"reply-cut"}


def test_there_are_more_than_five_hundred_of_them():
    assert sum(len(malformed(name)) for name in CLASSES) > 500


def test_a_service_that_never_answers_has_failed(saying: Saying):
    assert outcome(saying, NEVER, DirectAsker(saying.server, timeout=0.2)) == "timeout"


def test_the_good_reply_is_good(saying: Saying):
    """Without this, the rest of the file would prove nothing."""
    saying.replies.append(said(f"Here it is:\n```json\n{GOOD}\n```"))
    assert len(learned(saying.llm).drafts) == 1


def test_malformed_replies_of_a_service_without_schemas_are_no_better():
    with ChatServer(without_schemas(lambda _: said(GOOD[:-2]), ("json_schema", "json_object"))) as server:
        found = learned(DirectAsker(server))
    assert [refusal.reason for refusal in found.refusals] == ["bad-reply"]
    assert len(server.bodies) == 4, "three forms of the question, and one more try in the form that was taken"
