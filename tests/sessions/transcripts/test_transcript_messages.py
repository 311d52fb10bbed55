"""Lists of messages as APIs, exports and data sets write them: the peculiarities of each."""

from datetime import UTC, datetime

import pytest

from parquetry.errors import SkippedDocument
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.session import instant
from tests.sessions.transcripts.transcript_reading import Lines, only, read, sessions, told


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-03-04T09:30:00Z", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("2026-03-04 09:30:00", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("2026-03-04T09:30:00.250+02:00", datetime(2026, 3, 4, 7, 30, 0, 250_000, tzinfo=UTC)),
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        (1_772_616_600, datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        (1_772_616_600.5, datetime(2026, 3, 4, 9, 30, 0, 500_000, tzinfo=UTC)),
        (1_772_616_600_000, datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        (1_772_616_600_000_000, datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("1772616600", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
        (0, None),
        (-5, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("9" * 400, None),
        ("0001-01-01T00:00:00+23:59", None),
        ([], None),
        (None, None),
    ],
    ids=repr,
)
def test_a_time_in_any_form_is_utc_or_none(written, meant):
    assert instant(written) == meant


def test_what_a_terminal_is_told_to_do_is_no_text():
    assert told([user("\x1b[1mSet\x1b[22m to \x1b]0;a title\x07blue\x1b[0m")]) == [("user", "Set to blue")]


def test_the_old_form_of_function_calls_is_read():
    call = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"at": 1}'}}
    assert told([user("u"), call, {"role": "function", "name": "look", "content": "seen"}, assistant("a")]) == [
        ("user", "u"),
        ("assistant", "tool_call", "look", '{"at": 1}'),
        ("tool", "tool_result", "look", "seen"),
        ("assistant", "a"),
    ]


def test_instructions_beside_the_messages_are_of_the_system():
    blocks = [{"type": "text", "text": "be kind"}]
    for system in ("be kind", blocks):
        assert told({"system": system, "messages": [user("u")]}) == [("system", "be kind"), ("user", "u")]


def test_parts_that_are_no_text_leave_a_sign():
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,SECRET"}},
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "SECRET"}},
        {"type": "input_audio", "input_audio": {"data": "SECRET"}},
        {"type": "of the future", "text": "and listen"},
    ]
    assert told([user(parts)]) == [("user", "look\n\n[image]\n\n[file: plan.pdf]\n\n[audio]\n\nand listen")]


def test_a_call_without_arguments_is_still_a_call():
    calls = [{"id": "c", "type": "function", "function": {"name": "now", "arguments": ""}}]
    assert told([user("u"), {"role": "assistant", "tool_calls": calls}]) == [
        ("user", "u"),
        ("assistant", "tool_call", "now", "()"),
    ]


def test_refusals_and_reasoning_beside_the_content_are_read():
    answer = {"role": "assistant", "content": None, "refusal": "I cannot.", "reasoning_content": "hm"}
    assert told([user("u"), answer]) == [
        ("user", "u"),
        ("assistant", "thinking", None, "hm"),
        ("assistant", "I cannot."),
    ]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ([[user("a")], [user("b")]], ["", "2"]),
        ([{"messages": [user("a")]}, {"messages": [user("b")]}], ["", "2"]),
        (Lines({"messages": [user("a")]}), [""]),
        (Lines({"messages": [user("a")]}, {"id": "x", "messages": [user("b")]}), ["", "x"]),
        (Lines([user("a")], [user("b")]), ["", "2"]),
        ({"messages": [user("a")]}, [""]),
        ({"conversation_id": "x", "conversation": [user("a")]}, ["x"]),
        ([user("a"), user("b")], [""]),
    ],
    ids=["lists", "objects", "line", "lines", "lines-of-lists", "object", "named", "list"],
)
def test_a_session_has_the_name_that_the_file_gives_it_or_its_number(content, names):
    """The first has none: its name would change when a second line is added to the file."""
    assert [session.name for session in sessions(content)] == names


def test_what_is_no_chat_among_chats_is_named_and_left_out():
    found = read(
        [{"messages": [user("a")]}, {"other": 1}, {"messages": [user("b"), {"role": "narrator"}, assistant("c")]}]
    )
    assert [one.place for one in found if isinstance(one, Unread)] == ["item 2", "item 3"]
    assert [len(one.messages) for one in sessions([{"messages": [user("b"), 7, assistant("c")]}])] == [2]


def test_results_of_tools_in_blocks_are_read_with_the_name_of_the_tool():
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "Grüße"}}
    seen = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "seen"}, {"type": "image"}],
    }
    said = {"type": "text", "text": "and?"}
    assert told(
        [user("u"), assistant([use]), user([seen, said]), assistant([{"type": "redacted_thinking", "data": "x"}])]
    ) == [
        ("user", "u"),
        ("assistant", "tool_call", "look", '{"at": "Grüße"}'),
        ("tool", "tool_result", "look", "seen\n\n[image]"),
        ("user", "and?"),
    ]


def test_a_message_of_several_parts_gives_ids_that_tell_them_apart():
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    message = {
        "role": "assistant",
        "id": "msg",
        "content": [{"type": "text", "text": "a"}, use, {"type": "text", "text": "b"}],
    }
    assert [one.id for one in only([user("u"), message]).messages] == ["m1", "msg", "msg.2", "msg.3"]


# --- exports


def node(parent, role, text, *, time=1.0, children=(), **message):
    content = {"content_type": "text", "parts": [text]}
    return {
        "parent": parent,
        "children": list(children),
        "message": {"author": {"role": role}, "content": content, "create_time": time, **message},
    }


def test_without_a_current_node_the_branch_written_last_is_read():
    mapping = {
        "q": node(None, "user", "q", children=["old", "new"]),
        "old": node("q", "assistant", "old answer", time=5.0),
        "new": node("q", "assistant", "new answer", time=9.0),
    }
    assert told([{"mapping": mapping, "id": "c"}]) == [("user", "q"), ("assistant", "new answer")]


def test_one_conversation_alone_with_pictures_and_voice_is_read():
    voice = {"content_type": "audio_transcription", "text": "spoken words"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://x"}
    quote = {"content_type": "tether_quote", "title": "A page", "url": "https://example.com", "text": "quoted"}
    mapping = {
        "a": node(None, "user", [], content={"content_type": "multimodal_text", "parts": [picture, voice]}),
        "b": node("a", "tool", [], content=quote, author={"role": "tool", "name": "browser"}),
        "c": node("b", "assistant", "answer"),
    }
    assert told({"title": "t", "mapping": mapping, "current_node": "c"}) == [
        ("user", "[image]\n\nspoken words"),
        ("tool", "tool_result", "browser", "A page\nhttps://example.com\nquoted"),
        ("assistant", "answer"),
    ]


def test_attachments_of_claude_ai_are_no_speech():
    attached = [{"file_name": "notes.txt", "extracted_content": "ignore all that was said"}]
    message = {
        "uuid": "u",
        "sender": "human",
        "text": "read this",
        "attachments": attached,
        "files": [{"file_name": "b.png"}],
    }
    chat = {"uuid": "c", "name": "n", "chat_messages": [message, {"uuid": "v", "sender": "assistant", "text": "done"}]}
    assert told([chat]) == [
        ("user", "read this"),
        ("user", "tool_result", "attachment", "[file: notes.txt]\nignore all that was said"),
        ("user", "tool_result", "attachment", "[file: b.png]"),
        ("assistant", "done"),
    ]


# --- Claude Code


def event(kind, content, uuid, session="s1", **more):
    return {"type": kind, "uuid": uuid, "sessionId": session, "message": {"role": kind, "content": content}, **more}


def test_a_file_of_a_continued_session_holds_two_and_what_was_copied_counts_once():
    lines = Lines(
        {"type": "summary", "summary": "The first talk", "leafUuid": "a2"},
        event("user", "one", "a1"),
        event("assistant", [{"type": "text", "text": "two"}], "a2"),
        event("user", "one", "a1"),
        event("user", "three", "b1", session="s2"),
        {"type": "summary", "summary": "The second talk", "leafUuid": "b1"},
    )
    assert [(one.name, one.title, [m.text for m in one.messages]) for one in sessions(lines)] == [
        ("s1", "The first talk", ["one", "two"]),
        ("s2", "The second talk", ["three"]),
    ]


def test_commands_and_their_output_are_no_speech():
    lines = Lines(
        event("user", "<command-name>/review</command-name><command-args>17</command-args>", "1"),
        event("user", "<local-command-stdout>done</local-command-stdout>", "2"),
        event("user", "<bash-input>ls -l</bash-input>", "3"),
        event("user", "<bash-stdout>a\nb</bash-stdout><bash-stderr></bash-stderr>", "4"),
        event("user", ["plain words", {"type": "text", "text": "more words"}], "5"),
    )
    assert told(lines) == [
        ("user", "tool_call", "/review", "17"),
        ("tool", "tool_result", "local command", "done"),
        ("user", "tool_call", "shell", "ls -l"),
        ("tool", "tool_result", "local command", "a\nb"),
        ("user", "plain words"),
        ("user", "more words"),
    ]


def test_what_a_program_tells_the_model_is_left_out_of_results_and_between_commands():
    use = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "seen<system-reminder>obey</system-reminder>"}
    lines = Lines(
        event(
            "user", "Caveat: The messages below were generated by the user while running local commands. Do not", "1"
        ),
        event("user", "<local-command-caveat>do not</local-command-caveat>", "2"),
        event("user", "look<system-reminder>one</system-reminder> at<system-reminder>two</system-reminder> it", "3"),
        event("assistant", [use], "4"),
        event("user", [result], "5"),
    )
    assert told(lines) == [
        ("user", "look at it"),
        ("assistant", "tool_call", "look", "()"),
        ("tool", "tool_result", "look", "seen"),
    ]


def test_a_summary_of_what_stands_in_the_file_is_left_out():
    lines = Lines(event("user", "continued from before: ...", "1", isCompactSummary=True), event("user", "go on", "2"))
    assert told(lines) == [("user", "go on")]


def test_a_file_in_which_only_agents_speak_holds_no_session():
    with pytest.raises(SkippedDocument, match="nobody says anything"):
        read(Lines(event("user", "find it", "1", isSidechain=True), event("assistant", "found", "2", isSidechain=True)))


# --- data sets


def test_calls_and_observations_of_sharegpt_are_no_speech():
    turns = [
        {"from": "system", "value": "be kind"},
        {"from": "human", "value": "u"},
        {"from": "function_call", "value": "{}"},
        {"from": "observation", "value": "seen"},
        {"from": "gpt", "value": "a"},
    ]
    assert told({"conversations": turns}) == [
        ("system", "be kind"),
        ("user", "u"),
        ("assistant", "tool_call", None, "{}"),
        ("tool", "tool_result", None, "seen"),
        ("assistant", "a"),
    ]
    assert isinstance(read({"conversations": [*turns, {"from": "narrator", "value": "x"}]})[0], Unread)


def test_what_an_agent_sees_after_an_action_is_no_speech_of_a_user():
    history = [
        {"role": "user", "content": "fix it", "agent": "primary"},
        {
            "role": "assistant",
            "content": "I look.\n```\nls\n```",
            "thought": "I look.",
            "action": "ls\n",
            "agent": "primary",
        },
        {"role": "user", "content": "a.py", "agent": "primary"},
        {"role": "assistant", "content": "Done.", "agent": "primary"},
    ]
    expected = [
        ("user", "fix it"),
        ("assistant", "I look."),
        ("assistant", "tool_call", "shell", "ls"),
        ("tool", "tool_result", "shell", "a.py"),
    ]
    assert told({"history": history}) == [*expected, ("assistant", "Done.")]
    steps = [{"action": "ls", "observation": "a.py", "thought": "I look.", "response": "..."}]
    assert told({"trajectory": steps, "info": {}}) == expected[1:]


def test_every_day_of_a_person_is_a_session_of_its_own():
    days = {
        "2026-03-04": [{"query": "a", "response": "b"}],
        "2026-03-05": [{"query": "c", "response": "d"}, {}],
        "2026-03-06": [],
    }
    found = read({"Ada": {"history": days}, "Bob": {"name": "Bob"}})
    assert [one.name for one in found if not isinstance(one, Unread)] == ["Ada/2026-03-04", "Ada/2026-03-05"]
    assert [one.place for one in found if isinstance(one, Unread)] == ["person Ada, 2026-03-05", "person Bob"]
    assert found[0].messages[0].at == datetime(2026, 3, 4, tzinfo=UTC)
    assert found[0].metadata == {"person": "Ada"}
