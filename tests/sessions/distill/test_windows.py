"""A session is cut into windows: nothing is lost, repeated or too long."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.sessions.model import Message, Transcript
from parquetry.sessions.windows import TOOL_CHARACTERS, Mark, first_new, processed_mark, windows
from parquetry.settings.llm import SessionsSettings

KINDS = (
    ("user", "speech"),
    ("assistant", "speech"),
    ("assistant", "tool_call"),
    ("tool", "tool_result"),
    ("assistant", "thinking"),
)


def message(number, text="hello", role="user", kind="speech"):
    return Message(f"m{number}", role, kind, text, None, None)


def session_of(*texts):
    """Return a session whose speaker changes with each message, a user first."""
    return transcript(message(n, text, *KINDS[n % 2]) for n, text in enumerate(texts))


def transcript(messages):
    return Transcript("s", None, "test", tuple(messages), {})


def asked(**changes):
    return SessionsSettings(**{"window_characters": 1000, "overlap_messages": 2, **changes})


@st.composite
def grown_sessions(draw):
    """Generate a session, the number of its old messages, and settings."""
    drawn = draw(
        st.lists(st.tuples(st.sampled_from(KINDS), st.one_of(st.integers(1, 60), st.integers(1, 3000))), max_size=25)
    )
    messages = [
        message(number, "".join(f"{number}w{word} " for word in range(length // 5 + 1))[:length].strip(), *kind)
        for number, (kind, length) in enumerate(drawn)
    ]
    changes = {
        "window_characters": draw(st.integers(1000, 4000)),
        "overlap_messages": draw(st.sampled_from([0, 1, 2, 4, 100])),
        "include_tools": draw(st.booleans()),
    }
    return transcript(messages), draw(st.integers(0, len(messages))), asked(**changes)


@settings(deadline=None, max_examples=100)
@given(drawn=grown_sessions())
def test_every_new_message_is_in_the_windows_once_and_in_order(drawn):
    session, old, options = drawn
    found = windows(session, old, options)
    read = [one for window in found for one in window.messages]
    shown = [one for one in session.messages[old:] if options.include_tools or one.kind == "speech"]
    assert list(dict.fromkeys(one.id for one in read)) == [one.id for one in shown]
    for one in shown:
        parts = [part for part in read if part.id == one.id]
        assert parts == [replace(one, text=part.text) for part in parts]
        if one.kind == "speech" or len(one.text) <= TOOL_CHARACTERS:
            assert "".join(part.text for part in parts) == one.text


@settings(deadline=None, max_examples=100)
@given(drawn=grown_sessions())
def test_no_window_is_longer_than_the_limit(drawn):
    session, old, options = drawn
    for number, window in enumerate(windows(session, old, options)):
        assert window.index == number
        assert window.messages
        assert sum(len(one.text) for one in (*window.context, *window.messages)) <= options.window_characters
        assert len(window.context) <= options.overlap_messages
        assert all(one.text.strip() for one in window.context)


@settings(deadline=None, max_examples=100)
@given(drawn=grown_sessions())
def test_messages_read_before_are_only_context(drawn):
    session, old, options = drawn
    before = {one.id for one in session.messages[:old]}
    seen = [one.id for one in session.messages[:old]]
    for window in windows(session, old, options):
        assert before.isdisjoint(one.id for one in window.messages)
        assert {one.id for one in window.context} <= set(seen)
        seen += [one.id for one in window.messages]


@settings(deadline=None, max_examples=100)
@given(drawn=grown_sessions())
def test_a_session_that_grew_is_read_on_from_where_it_was(drawn):
    session, old, _ = drawn
    mark = processed_mark(session.messages[:old])
    assert first_new(session.messages, mark) == old
    assert first_new(session.messages, processed_mark(session.messages)) == len(session.messages)
    assert first_new(session.messages, None) == 0


@pytest.mark.parametrize("change", ["text", "role", "kind", "tool", "id"])
def test_a_session_that_is_not_what_it_was_is_read_anew(change):
    session = session_of("a", "b", "c")
    mark = processed_mark(session.messages[:2])
    other = {"text": "x", "role": "system", "kind": "thinking", "tool": "x", "id": "x"}[change]
    changed = [replace(session.messages[0], **{change: other}), *session.messages[1:]]
    assert first_new(changed, mark) == 0


def test_a_session_that_became_shorter_is_read_anew():
    session = session_of("a", "b", "c")
    assert first_new(session.messages[:2], processed_mark(session.messages)) == 0


def test_a_mark_survives_being_stored():
    mark = processed_mark(session_of("a", "b").messages)
    assert Mark(2, str(mark.hash)) == mark == processed_mark(session_of("a", "b").messages)


def test_two_messages_are_not_the_same_as_one_of_both_texts():
    assert processed_mark([message(1, "ab", "user"), message(2, "c")]) != processed_mark(
        [message(1, "a", "user"), message(2, "bc")]
    )


def test_a_turn_is_not_cut_if_it_fits():
    session = session_of("u" * 300, "a" * 300, "u" * 300, "a" * 100)
    assert [[one.id for one in window.messages] for window in windows(session, 0, asked(overlap_messages=0))] == [
        ["m0", "m1"],
        ["m2", "m3"],
    ]


def test_a_turn_that_is_too_long_is_cut_between_messages():
    turn = [message(0, "u" * 300), *(message(n, "a" * 300, "assistant") for n in range(1, 6))]
    found = windows(transcript(turn), 0, asked(overlap_messages=0))
    assert [[one.id for one in window.messages] for window in found] == [["m0", "m1"], ["m2", "m3"], ["m4", "m5"]]


def test_a_message_that_is_too_long_is_cut_at_words_and_keeps_its_id():
    text = "longer " * 600
    found = windows(session_of(text), 0, asked(overlap_messages=0))
    assert {one.id for window in found for one in window.messages} == {"m0"}
    assert all(window.messages[0].text.endswith("longer ") for window in found)
    assert len(found) == 5


def test_a_long_result_of_a_tool_keeps_its_ends_and_says_what_is_left_out():
    result = message(1, "BEGIN" + "x" * 50_000 + "END", "tool", "tool_result")
    shown = windows(transcript([message(0), result]), 0, SessionsSettings())[0].messages[1].text
    assert shown.startswith("BEGIN")
    assert shown.endswith("END")
    assert "characters left out]" in shown
    assert len(shown) <= TOOL_CHARACTERS


def test_context_is_the_last_messages_before_and_long_ones_are_cut():
    session = session_of("first", "old " * 500, "older question", "new")
    window = windows(session, 3, asked(window_characters=2000))[0]
    assert [one.id for one in window.context] == ["m1", "m2"]
    assert "characters left out]" in window.context[0].text
    assert [one.text for one in window.messages] == ["new"]


def test_nothing_new_gives_no_window():
    assert windows(session_of("a", "b"), 2, asked()) == []
    only_tools = transcript([message(0, "x", "tool", "tool_result")])
    assert windows(only_tools, 0, asked(include_tools=False)) == []


def test_of_a_long_context_a_small_window_shows_the_last_message():
    session = session_of("a" * 50, "b" * 50, "c")
    window = windows(session, 2, asked(overlap_messages=100))[0]
    assert window.context == session.messages[1:2]
