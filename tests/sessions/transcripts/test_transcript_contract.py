"""The same conversation in every format gives the same session."""

import re
from pathlib import Path

import pytest

from parquetry.model import RawDocument
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.content import read_content
from parquetry.sessions.transcripts.registry import FORMATS, read_transcripts
from parquetry.sessions.windows import first_new, processed_mark
from tests.sessions.transcripts.transcript_samples import HIDDEN, SAMPLES, TURNS, speech

every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)


def session_of(content):
    """Return the only session of a file that is read without loss."""
    found = list(read_transcripts(RawDocument(content, "chat.bin")))
    assert [type(one) for one in found] == [Transcript], found
    return found[0]


@every_sample
def test_speech_is_the_same_in_every_format(sample):
    session = session_of(sample.write(TURNS))
    said = [(one.role, one.text) for one in session.messages if one.kind == "speech" and one.role != "system"]
    assert said == [one for one in speech() if one[0] == "user" or not sample.users_only]
    assert (session.format, session.name) == (sample.format, sample.name)


@every_sample
def test_tools_are_kept_apart_from_speech(sample):
    session = session_of(sample.write(TURNS))
    calls = [message for message in session.messages if message.kind == "tool_call"]
    results = [message for message in session.messages if message.kind == "tool_result" and "RESULT" in message.text]
    if sample.tools:
        assert [call.tool for call in calls] == [turn.tool for turn in TURNS]
        assert ["CALL-1" in calls[0].text, "CALL-2" in calls[1].text, "CALL-3" in calls[2].text] == [True] * 3
        assert [result.tool for result in results] == [turn.tool for turn in TURNS]
        assert TURNS[0].result in results[0].text
        assert {result.role for result in results} == {"tool"}
    else:
        assert calls == []
    assert not any(
        "RESULT" in message.text or "CALL" in message.text for message in session.messages if message.kind == "speech"
    )


@every_sample
def test_thoughts_are_kept_apart_from_speech(sample):
    session = session_of(sample.write(TURNS))
    thoughts = [message.text for message in session.messages if message.kind == "thinking"]
    assert thoughts == ([turn.thought for turn in TURNS] if sample.thoughts else [])


@every_sample
def test_what_nobody_said_is_in_no_session(sample):
    assert HIDDEN not in repr(session_of(sample.write(TURNS)))


@every_sample
def test_one_format_and_no_other_claims_a_file(sample):
    """The order in which the formats are tried does not matter."""
    content = read_content(RawDocument(sample.write(TURNS), "x"))
    assert [form.name for form in FORMATS if form.claims(content)] == [sample.format, *sample.also]


@every_sample
def test_messages_of_a_session_that_grew_are_what_they_were(sample):
    """Evidence refers to messages by id, and old messages are not read again."""
    before, after = session_of(sample.write(TURNS[:1])), session_of(sample.write(TURNS))
    assert after.name == before.name
    assert after.messages[: len(before.messages)] == before.messages
    assert first_new(after.messages, processed_mark(before.messages)) == len(before.messages) < len(after.messages)


@every_sample
def test_ids_are_unique_and_of_one_word(sample):
    ids = [message.id for message in session_of(sample.write(TURNS)).messages]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*", one) for one in ids)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
@every_sample
def test_other_encodings_of_a_file_make_no_difference(sample, encoding):
    content = sample.write(TURNS)
    assert session_of(content.decode().encode(encoding)) == session_of(content)


@every_sample
def test_line_ends_of_another_system_make_no_difference(sample):
    content = sample.write(TURNS)
    assert session_of(content.replace(b"\n", b"\r\n")) == session_of(content)


def test_every_format_has_a_sample():
    assert {sample.format for sample in SAMPLES} == {form.name for form in FORMATS}


def test_the_page_about_formats_names_every_one():
    page = Path(__file__).parents[3] / "docs" / "sessions-formats.md"
    named = re.findall(r"^\| `([a-z-]+)` \|", page.read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(form.name for form in FORMATS)
