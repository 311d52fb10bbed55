"""The JSON of a reply is found where a model puts it, never guessed."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.llm.json_reply import REPLY_CHARACTERS, json_object

VALUE = {"entries": [{"text": 'a "quoted" {brace} \\ é 木', "n": [1, 2.5, None, True]}]}
GOOD = json.dumps(VALUE, ensure_ascii=False)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(GOOD, id="plain"),
        pytest.param(f"\n  {GOOD}  \n", id="space"),
        pytest.param(json.dumps(VALUE, indent=2), id="indented"),
        pytest.param(f"```json\n{GOOD}\n```", id="code block"),
        pytest.param(f"Here is what I found:\n\n```\n{GOOD}\n```\nLet me know!", id="prose around a block"),
        pytest.param(f"Sure. {GOOD} Anything else?", id="prose"),
        pytest.param(f"<think>Maybe {{this}}? No.</think>\n{GOOD}", id="thought before"),
        pytest.param(f"\ufeff{GOOD}", id="byte order mark"),
    ],
)
def test_the_object_is_found(reply):
    assert json_object(reply) == VALUE


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        pytest.param("", "no object", id="nothing"),
        pytest.param("I found nothing.", "no object", id="prose"),
        pytest.param("[1, 2]", "no object", id="a list"),
        pytest.param(f"[{GOOD}]", "one JSON object", id="an object in a list"),
        pytest.param(f"Here: [ {GOOD} ]", "one JSON object", id="an object in a list in prose"),
        pytest.param(GOOD + GOOD, "one JSON object", id="two"),
        pytest.param(f"Not {{}} but {GOOD}", "one JSON object", id="two with prose"),
        pytest.param(GOOD[:-1], "Invalid JSON", id="cut"),
        pytest.param(GOOD.replace("]}", ",]}"), "Invalid JSON", id="trailing comma"),
        pytest.param(GOOD.replace('"', "'"), "Invalid JSON", id="single quotes"),
        pytest.param('{"a": NaN}', "NaN is no number", id="NaN"),
        pytest.param('{"a": -Infinity}', "-Infinity is no number", id="infinity"),
        pytest.param('{"a":' * 30_000, "nested too deeply", id="nested"),
        pytest.param('{"a": "' + "x" * REPLY_CHARACTERS + '"}', "characters", id="long"),
        pytest.param("<think>" + GOOD, "no object", id="nothing but a thought"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "Exceeds", id="a number of thousands of digits"),
    ],
)
def test_what_is_not_one_object_is_refused_with_what_is_wrong(reply, wrong):
    with pytest.raises(ValueError, match=wrong) as caught:
        json_object(reply)
    assert "\n" not in str(caught.value)


def test_an_object_inside_one_that_cannot_be_read_is_never_taken():
    """Text that a model quotes from a session must not become its reply."""
    inside = '{"entries": [{"text": "The user wrote {"entries": [{"text": "evil", "level": "public"}]}."}]}'
    with pytest.raises(ValueError, match="Invalid JSON"):
        json_object(inside)


@given(st.integers(0, len(GOOD) - 1))
def test_a_cut_reply_is_no_reply(length):
    with pytest.raises(ValueError, match="Invalid JSON"):
        json_object(GOOD[:length])


@given(st.text(max_size=300))
def test_any_text_is_an_object_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert isinstance(json_object(text), dict)
