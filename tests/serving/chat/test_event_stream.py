"""Events are taken apart as clients do it, wherever blocks end, and no byte is lost."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.chat.event_stream import MOST_EVENT_BYTES, EventBuffer, encoded
from parquetry.serving.chat.failures import UpstreamFailed

SIGNS = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x", b"data:y", b":", b"event: e", b" ", b"\xff"]), max_size=30
)


def read(blocks):
    buffer = EventBuffer()
    found = [event for block in blocks for event in buffer.feed(block)]
    return found, buffer.rest()


def reference(content):
    """Return the data of each event, read line by line as the specification says."""
    lines, found, data = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1], [], []
    for line in lines:
        if not line:
            found += [b"\n".join(data)] if data else []
            data = []
        elif line.partition(b":")[0] == b"data":
            data.append(line.partition(b":")[2].removeprefix(b" "))
    return [each.decode("utf-8", "replace") for each in found]


@given(SIGNS)
def test_events_are_those_of_the_specification(signs):
    content = b"".join(signs)
    found, _ = read([content])
    assert [event.data for event in found if event.data is not None] == reference(content)


@given(SIGNS, st.lists(st.integers(0, 60), max_size=6))
def test_no_byte_is_lost_and_blocks_may_end_anywhere(signs, cuts):
    content = b"".join(signs)
    places = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    blocks = [content[start:end] for start, end in pairwise(places)]
    found, rest = read(blocks)
    raw = b"".join(event.raw for event in found)
    assert content.startswith(raw)
    whole, _ = read([content])
    assert [event.data for event in found if event.data] == [event.data for event in whole if event.data]
    if rest is not None:
        assert rest.raw.startswith(content[len(raw) :])


def test_an_event_is_never_ended_by_what_is_in_it():
    value = {"text": "a\n\ndata: [DONE]\n\n\r\r\u2028\u2029\x85"}
    raw = encoded(value)
    found, rest = read([raw])
    assert [json.loads(event.data) for event in found] == [value]
    assert rest is None
    assert raw.count(b"\n") == 2


@pytest.mark.parametrize("data", ["[DONE]", " [DONE]", "[DONE] "])
def test_the_last_event_is_known(data):
    (event,), _ = read([f"data: {data}\n\n".encode()])
    assert event.is_done


@pytest.mark.parametrize("data", ["garbage", "[1]", "null", "", "[" * 100_000])
def test_what_is_no_object_is_a_failure(data):
    (event,), _ = read([f"data: {data}\n\n".encode()])
    with pytest.raises(UpstreamFailed) as failed:
        event.json()
    assert failed.value.reason == "upstream-broken"


def test_an_event_without_an_end_is_bounded():
    with pytest.raises(UpstreamFailed):
        read([b"data: " + b"x" * (MOST_EVENT_BYTES // 4)] * 6)


def test_events_of_one_block_stay_as_they_came():
    pieces = [b"data: a\n\n", b": ping\n\n", b"event: e\ndata: b\n\n", b"data: c\n\n", b"\n\n", b"data:d\n\n"]
    found, rest = read([b"".join(pieces)])
    assert [event.raw for event in found] == pieces
    assert [event.data for event in found] == ["a", None, "b", "c", None, "d"]
    assert rest is None


@pytest.mark.parametrize(("raw", "data"), [(b"data: x\r\n\n", "x"), (b"data: a\rdata: b\n\n", "a\nb")])
def test_line_ends_of_other_systems_are_no_data(raw, data):
    (event,), _ = read([raw])
    assert event.data == data
