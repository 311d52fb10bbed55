"""Tables and Markdown logs: the peculiarities of each."""

from datetime import UTC, datetime

import pytest

from parquetry.errors import SkippedDocument
from parquetry.sessions.transcripts.base import Unread
from tests.sessions.transcripts.transcript_reading import Lines, only, read, sessions, told

# --- tables


def test_rows_of_several_sessions_are_sorted_into_them():
    table = "session;from;text\nb;user;1\na;user;2\nb;assistant;3\n"
    assert [(one.name, [m.text for m in one.messages]) for one in sessions(table)] == [("b", ["1", "3"]), ("a", ["2"])]


def test_people_without_a_role_are_users_and_keep_their_names():
    assert told("speaker,utterance\nAda,hello\nBob,hi\n") == [("user", "Ada: hello"), ("user", "Bob: hi")]


def test_rows_may_hold_tools_times_and_ids():
    rows = Lines(
        {"message_id": "q-1", "role": "user", "text": "u", "date": "2026-03-04", "session": "s"},
        {
            "message_id": "q-2",
            "role": "tool",
            "text": "seen",
            "date": 1_772_616_600,
            "session": "s",
            "tool_name": "look",
        },
    )
    session = only(rows)
    assert [(one.id, one.kind, one.tool) for one in session.messages] == [
        ("q-1", "speech", None),
        ("q-2", "tool_result", "look"),
    ]
    assert [one.at for one in session.messages] == [
        datetime(2026, 3, 4, tzinfo=UTC),
        datetime(2026, 3, 4, 9, 30, tzinfo=UTC),
    ]


def test_rows_may_hold_whole_messages_of_an_api():
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    rows = Lines(
        {"thread_id": "s", "id": "q", "role": "user", "content": [{"type": "text", "text": {"value": "u"}}]},
        {"thread_id": "s", "id": "r", "role": "assistant", "content": None, "tool_calls": [call]},
    )
    assert told(rows) == [("user", "u"), ("assistant", "tool_call", "look", "{}")]
    assert [one.id for one in only(rows).messages] == ["q", "r"]


def test_a_row_without_a_speaker_is_named():
    found = read("role,content\nuser,hello\n,orphan\nassistant,hi\n")
    assert [one.place for one in found if isinstance(one, Unread)] == ["row 3"]


def test_cells_of_several_lines_are_read():
    assert told('role,content\nuser,"one, two\n\nthree"\nassistant,"say ""hi"""\n') == [
        ("user", "one, two\n\nthree"),
        ("assistant", 'say "hi"'),
    ]


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ("name,value\nbolt,3\nnut,4\n", 0),
        ("user,message\nada,logged in\n", 0),
        ("user,message\nuser,hello\nassistant,hi\n", 2),
        (Lines({"name": "bolt", "value": 3}, {"name": "nut", "value": 4}), 0),
    ],
    ids=["name-value", "user-message", "roles", "lines"],
)
def test_a_table_of_anything_is_no_chat(table, count):
    if count == 0:
        with pytest.raises(SkippedDocument, match="no-session"):
            read(table)
    else:
        assert len(only(table).messages) == count


def test_a_quotation_mark_that_is_never_closed_is_told():
    found = read('role,content\nuser,"hello\n' + "assistant,hi\n" * 300)
    assert found[0] == Unread("the table", "a quotation mark is never closed: quotation marks were read as text")
    assert len(found[1].messages) == 301


def test_a_chat_in_a_cell_is_read_however_its_speakers_are_marked():
    table = 'id,dialogue\n1,"User 1: Hi!\nUser 2: Hello,\nyou."\n2,"*User 1:* Hi!\n\n*User 2:* Hello!"\n3,none\n'
    found = read(table)
    assert [[m.text for m in one.messages] for one in found[:2]] == [
        ["User 1: Hi!", "User 2: Hello,\nyou."],
        ["User 1: Hi!", "User 2: Hello!"],
    ]
    assert found[2] == Unread("row 4", "no conversation in `dialogue`")


# --- SpecStory


def test_a_quoted_log_in_the_output_of_a_tool_is_no_message():
    log = """_**User (2026-03-04 09:30:00Z)**_

show the log

---

_**Agent (m 2026-03-04 09:31:00Z)**_

Here it is.

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash** `cat log`</summary>

```text
_**User (2026-03-01 00:00:00Z)**_

forged words

---
```
</details></tool-use>

That was all.
"""
    assert [one[:3] if len(one) > 2 else one for one in told(log)] == [
        ("user", "show the log"),
        ("assistant", "Here it is."),
        ("assistant", "tool_call", "Bash"),
        ("tool", "tool_result", "Bash"),
        ("assistant", "That was all."),
    ]


def test_code_that_a_tool_was_given_is_not_what_it_returned():
    log = """_**User**_

run it

_**Agent (m 2026-03-04 09:31:00Z)**_

<tool-use data-tool-type="unknown" data-tool-name="exec"><details>
<summary>Tool use: **exec**</summary>
Input: ```
ls
```

```text
a.py
```
</details></tool-use>
"""
    assert told(log) == [
        ("user", "run it"),
        ("assistant", "tool_call", "exec", "Input: ```\nls\n```"),
        ("tool", "tool_result", "exec", "```text\na.py\n```"),
    ]


def test_a_code_block_left_open_does_not_swallow_what_follows():
    log = "_**User**_\n\nwhat is\n```\nthis\n\n---\n\n_**Assistant**_\n\nCode.\n\n_**User**_\n\n```py\nx\n```\n"
    assert told(log) == [("user", "what is\n```\nthis"), ("assistant", "Code."), ("user", "```py\nx\n```")]


def test_a_file_of_two_sessions_gives_both():
    text = "".join(
        f"<!-- cursor Session {name} (2026-03-04 09:30:00Z) -->\n\n_**User**_\n\nhello {name}\n\n"
        for name in ("one", "two")
    )
    assert [(one.name, one.messages[0].text) for one in sessions("# Both\n\n" + text)] == [
        ("one", "hello one"),
        ("two", "hello two"),
    ]


# --- aider


def test_sessions_of_aider_follow_each_other():
    log = """
# aider chat started at 2026-03-04 09:30:00

> Git repo: .git  

#### /add app.py  

> Added app.py to the chat  

> Model: x  

#### use tabs  
#### and no spaces  

Like so:

```python
#### not the user
> not the program
```

# aider chat started at 2026-03-04 09:30:00

#### again
"""  # noqa: W291 (aider ends lines so)
    first, second = sessions(log)
    assert (first.name, second.name) == ("2026-03-04 09:30:00", "2026-03-04 09:30:00.2")
    assert [(one.role, one.kind, one.tool, one.text) for one in first.messages] == [
        ("tool", "tool_result", "aider", "Git repo: .git"),
        ("user", "tool_call", "/add", "app.py"),
        ("tool", "tool_result", "aider", "Added app.py to the chat\n\nModel: x"),
        ("user", "speech", None, "use tabs\nand no spaces"),
        ("assistant", "speech", None, "Like so:\n\n```python\n#### not the user\n> not the program\n```"),
    ]
    assert first.messages[0].at == datetime(2026, 3, 4, 9, 30, tzinfo=UTC)


# --- other Markdown


@pytest.mark.parametrize(
    "log",
    [
        "## User\n\nhello\n\n## Assistant\n\nhi\nyou\n",
        "**User**\n\nhello\n\n---\n\n**Cursor**\n\nhi\nyou\n\n---\n",
        "**Human:** hello\n\n**Claude:** hi\nyou\n",
        "You: hello\n\nChatGPT: hi\nyou\n",
        "### Human (2026-03-04 09:30)\nhello\n### GPT-4o [2026-03-04]\nhi\nyou\n",
        "User:\nhello\n\nAssistant:\nhi\nyou",
    ],
    ids=["headings", "bold", "bold-inline", "inline", "with-times", "colons"],
)
def test_a_log_is_read_however_it_names_the_speakers(log):
    assert told(log) == [("user", "hello"), ("assistant", "hi\nyou")]


def test_a_name_in_a_code_block_or_a_sentence_is_no_speaker():
    log = "## User\n\n```\nUser: x\nAssistant: y\n```\n\n## Assistant\n\nThe user: fixed. You can go on.\nUser page.\n"
    assert [len(one.messages) for one in sessions(log)] == [2]


def test_a_code_block_in_a_longer_one_ends_nothing():
    log = "## User\n\n````md\n```\nUser: x\n```\nUser: y\n````\n\n## Assistant\n\ndone\n"
    assert [len(one.messages) for one in sessions(log)] == [2]


def test_a_code_block_that_nobody_closed_is_none():
    log = "## User\n\nwhat is\n\n```\nthis\n\n## Assistant\n\nCode.\n"
    assert told(log) == [("user", "what is\n\n```\nthis"), ("assistant", "Code.")]


def test_the_title_of_a_log_is_its_first_heading():
    assert only("# Plans\n\n## User\n\nhello\n\n## AI\n\nhi\n").title == "Plans"
