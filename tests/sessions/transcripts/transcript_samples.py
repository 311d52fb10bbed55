"""One conversation in every supported chat session format."""

import csv
import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Turn:
    """A user's message, and an assistant's reasoning, tool call and answer."""

    user: str
    thought: str
    tool: str
    arguments: str
    result: str
    answer: str


TURNS = (
    Turn(
        "Why does ALPHA-1 fail? Grüße, 東京 🎉",
        "THOUGHT-1: look at the log",
        "read_log",
        '{"path": "CALL-1"}',
        "RESULT-1 line one\nRESULT-1 line two",
        "BETA-1: the disk is full.\n\n- free it\n- try again",
    ),
    Turn(
        "Use GAMMA-2 from now on, please.", "THOUGHT-2", "set_mode", '{"mode": "CALL-2"}', "RESULT-2", "DELTA-2: done."
    ),
    Turn(
        "And a last thing: EPSILON-3?\n\nIt has two paragraphs.",
        "THOUGHT-3",
        "ask",
        '{"q": "CALL-3"}',
        "RESULT-3",
        "ZETA-3.",
    ),
)
HIDDEN = "HIDDEN-9"
"""marks content of a format that is not part of the conversation; no session may hold it"""


def speech(turns=TURNS):
    """Return role and text of each message in the turns."""
    return [said for turn in turns for said in (("user", turn.user), ("assistant", turn.answer))]


def time_of(number):
    return START + timedelta(minutes=number)


def iso(number):
    return time_of(number).isoformat().replace("+00:00", "Z")


def encoded(value):
    return json.dumps(value, ensure_ascii=False).encode()


def lines_of(values):
    return b"".join(encoded(value) + b"\n" for value in values)


# --- the APIs


def openai_messages(turns):
    messages = [{"role": "system", "content": "You are kind."}]
    for number, turn in enumerate(turns):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": turn.tool, "arguments": turn.arguments},
        }
        messages += [
            {"role": "user", "content": [{"type": "text", "text": turn.user}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": turn.result},
            {"role": "assistant", "content": turn.answer},
        ]
    return messages


def openai_list(turns):
    return encoded(openai_messages(turns))


def openai_object(turns):
    return encoded({"id": "chat-7", "model": "gpt-x", "messages": openai_messages(turns)})


def openai_fine_tuning(turns):
    return lines_of([{"messages": openai_messages(turns)}])


def openai_message_lines(turns):
    return lines_of(openai_messages(turns))


def anthropic_messages(turns):
    messages = []
    for number, turn in enumerate(turns):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.tool, "input": json.loads(turn.arguments)}
        messages += [
            {"role": "user", "content": turn.user},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": turn.thought, "signature": HIDDEN}, use],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": turn.result}],
            },
            {"role": "assistant", "content": [{"type": "text", "text": turn.answer}]},
        ]
    return encoded({"system": "You are kind.", "messages": messages})


# --- exports


def chatgpt(turns):
    mapping = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    last = "root"

    def add(role, content, *, name=None, recipient="all", hidden=False, parent=None):
        nonlocal last
        key = f"node-{len(mapping)}"
        at = time_of(len(mapping)).timestamp()
        mapping[key] = {
            "id": key,
            "parent": parent or last,
            "children": [],
            "message": {
                "id": key,
                "author": {"role": role, "name": name},
                "create_time": at,
                "recipient": recipient,
                "content": content,
                "metadata": {"is_visually_hidden_from_conversation": True} if hidden else {"model_slug": "gpt-x"},
            },
        }
        mapping[parent or last]["children"].append(key)
        if parent is None:
            last = key

    add("system", {"content_type": "text", "parts": [HIDDEN]}, hidden=True)
    add("user", {"content_type": "user_editable_context", "user_profile": HIDDEN, "parts": [HIDDEN]})
    for turn in turns:
        before = last
        add("user", {"content_type": "multimodal_text", "parts": [turn.user]})
        add("assistant", {"content_type": "text", "parts": [HIDDEN + " regenerated"]}, parent=before)
        add("assistant", {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": turn.thought}]})
        add("assistant", {"content_type": "code", "language": "json", "text": turn.arguments}, recipient=turn.tool)
        add("tool", {"content_type": "execution_output", "text": turn.result}, name=turn.tool)
        add("assistant", {"content_type": "text", "parts": [turn.answer]})
    conversation = {"title": "A talk", "conversation_id": "conv-7", "mapping": mapping, "current_node": last}
    return encoded([conversation])


def claude_ai(turns):
    messages = []
    for turn in turns:
        use = {"type": "tool_use", "id": f"t{len(messages)}", "name": turn.tool, "input": json.loads(turn.arguments)}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": [{"type": "text", "text": turn.result}]}
        blocks = [{"type": "thinking", "thinking": turn.thought}, use, result, {"type": "text", "text": turn.answer}]
        messages += [
            {"uuid": f"u-{len(messages)}", "sender": "human", "text": turn.user, "content": [], "created_at": iso(1)},
            {
                "uuid": f"a-{len(messages)}",
                "sender": "assistant",
                "text": HIDDEN,
                "content": blocks,
                "created_at": iso(2),
            },
        ]
    return encoded([{"uuid": "conv-7", "name": "A talk", "chat_messages": messages}])


def claude_code_events(turns):
    events = [{"type": "file-history-snapshot", "messageId": "x", "snapshot": {"text": HIDDEN}}]

    def add(kind, content, **more):
        events.append(
            {
                "type": kind,
                "uuid": f"uuid-{len(events)}",
                "sessionId": "session-7",
                "timestamp": iso(len(events)),
                "cwd": "/project",
                "isSidechain": False,
                "message": {"role": kind, "content": content},
                **more,
            }
        )

    add("user", f"Caveat: {HIDDEN}", isMeta=True)
    for number, turn in enumerate(turns):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.tool, "input": json.loads(turn.arguments)}
        add("user", f"{turn.user}<system-reminder>{HIDDEN}</system-reminder>")
        add("assistant", [{"type": "thinking", "thinking": turn.thought}, use])
        add("user", f"{HIDDEN} to an agent", isSidechain=True)
        add("user", [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": turn.result}])
        add("assistant", [{"type": "text", "text": turn.answer}])
    return events


def claude_code(turns):
    return lines_of(claude_code_events(turns))


def claude_code_object(turns):
    return encoded({"loglines": claude_code_events(turns)})


# --- data sets


def sharegpt(turns):
    said = [{"from": {"user": "human", "assistant": "gpt"}[role], "value": text} for role, text in speech(turns)]
    return encoded([{"id": "identity_7", "conversations": said}])


def swe_agent(turns):
    history = [
        {"role": "system", "content": "You are kind.", "agent": "main"},
        {"role": "user", "content": HIDDEN, "is_demo": True, "agent": "main"},
    ]
    for number, turn in enumerate(turns):
        call = {"id": f"call_{number}", "function": {"name": turn.tool, "arguments": turn.arguments}}
        history += [
            {"role": "user", "content": turn.user, "agent": "main", "message_type": "observation"},
            {"role": "assistant", "content": "", "action": HIDDEN, "agent": "main", "tool_calls": [call]},
            {"role": "tool", "content": turn.result, "agent": "main", "tool_call_ids": [f"call_{number}"]},
            {"role": "assistant", "content": turn.answer, "agent": "main"},
        ]
    return encoded({"environment": "test", "trajectory": [], "history": history})


def memorybank(turns):
    exchanges = [{"query": turn.user, "response": turn.answer} for turn in turns]
    return encoded({"Ada": {"name": "Ada", "summary": {"d": HIDDEN}, "history": {"2026-03-04": exchanges}}})


def bfcl(turns):
    return lines_of(
        [
            {
                "id": "multi_turn_7",
                "question": [[{"role": "user", "content": turn.user}] for turn in turns],
                "path": [HIDDEN],
            }
        ]
    )


# --- tables


def rows_csv(turns):
    target = io.StringIO()
    writer = csv.writer(target)
    writer.writerow(["conversation_id", "time", "Role", "Message"])
    writer.writerows(["chat-7", iso(number), role, text] for number, (role, text) in enumerate(speech(turns)))
    return target.getvalue().encode()


def rows_lines(turns):
    return lines_of(
        {"session_id": "chat-7", "speaker": role, "text": text, "ts": time_of(number).timestamp() * 1000}
        for number, (role, text) in enumerate(speech(turns))
    )


def dialog_table(turns):
    target = io.StringIO()
    writer = csv.writer(target)
    writer.writerow(["user 1 personas", "Best Generated Conversation"])
    names = {"user": "Human", "assistant": "Assistant"}
    writer.writerow([HIDDEN, "\n".join(f"{names[role]}: {text}" for role, text in speech(turns))])
    return target.getvalue().encode()


# --- Markdown


def specstory(turns):
    text = f"<!-- Generated by SpecStory -->\n\n# A talk\n\n<!-- Claude Code Session session-7 ({iso(0)}) -->\n"
    for turn in turns:
        text += (
            f"\n_**User (2026-03-04 09:31:00Z)**_\n\n{turn.user}\n\n---\n"
            f"\n_**Agent (claude-x 2026-03-04 09:32:00Z)**_\n\n<think><details><summary>Thought Process</summary>\n"
            f"{turn.thought}\n</details></think>\n"
            f"\n_**Agent - sidechain (claude-x 2026-03-04 09:32:01Z)**_\n\n{HIDDEN}\n"
            f"\n_**Agent (claude-x 2026-03-04 09:32:02Z)**_\n\n"
            f'<tool-use data-tool-type="x" data-tool-name="{turn.tool}"><details>\n'
            f"<summary>Tool use: **{turn.tool}**</summary>\n"
            f"`{turn.arguments}`\n\n```text\n{turn.result}\n```\n"
            f"</details></tool-use>\n"
            f"\n_**Agent (claude-x 2026-03-04 09:33:00Z)**_\n\n{turn.answer}\n\n---\n"
        )
    return text.encode()


def aider(turns):
    text = "\n# aider chat started at 2026-03-04 09:30:00\n\n> Aider v0.80  \n> Model: x  \n"
    for turn in turns:
        asked = "\n".join(f"#### {line}  " for line in turn.user.split("\n"))
        text += f"\n{asked}\n\n{turn.answer}\n\n> {turn.result.splitlines()[0]}  \n"
    return text.encode()


def headings(turns):
    names = {"user": "User", "assistant": "Assistant"}
    return ("# A talk\n\n" + "\n".join(f"## {names[role]}\n\n{text}\n\n---\n" for role, text in speech(turns))).encode()


def plain(turns):
    names = {"user": "Human", "assistant": "AI"}
    return "\n\n".join(f"{names[role]}: {text}" for role, text in speech(turns)).encode()


@dataclass(frozen=True)
class Sample:
    """The conversation as one format writes it."""

    id: str
    format: str
    write: object
    """turns -> bytes"""
    tools: bool = False
    """True if calls and results are kept"""
    thoughts: bool = False
    users_only: bool = False
    name: str = ""
    also: tuple[str, ...] = ()
    """formats that would accept it if this one did not; they are tried later"""


SAMPLES = (
    Sample("openai-list", "openai", openai_list, tools=True),
    Sample("openai-object", "openai", openai_object, tools=True, name="chat-7"),
    Sample("openai-fine-tuning", "openai", openai_fine_tuning, tools=True),
    Sample("openai-message-lines", "openai", openai_message_lines, tools=True),
    Sample("anthropic", "anthropic", anthropic_messages, tools=True, thoughts=True),
    Sample("chatgpt", "chatgpt", chatgpt, tools=True, thoughts=True, name="conv-7"),
    Sample("claude-ai", "claude-ai", claude_ai, tools=True, thoughts=True, name="conv-7"),
    Sample("claude-code", "claude-code", claude_code, tools=True, thoughts=True, name="session-7"),
    Sample("claude-code-object", "claude-code", claude_code_object, tools=True, thoughts=True, name="session-7"),
    Sample("sharegpt", "sharegpt", sharegpt, name="identity_7"),
    Sample("swe-agent", "swe-agent", swe_agent, tools=True),
    Sample("memorybank", "memorybank", memorybank, name="Ada/2026-03-04"),
    Sample("bfcl", "bfcl", bfcl, users_only=True, name="multi_turn_7"),
    Sample("rows-csv", "rows", rows_csv, name="chat-7"),
    Sample("rows-lines", "rows", rows_lines, name="chat-7"),
    Sample("dialog-table", "dialog-table", dialog_table, also=("markdown",), name="1"),
    Sample("specstory", "specstory", specstory, tools=True, thoughts=True, name="session-7"),
    Sample("aider", "aider", aider, name="2026-03-04 09:30:00"),
    Sample("markdown-headings", "markdown", headings),
    Sample("plain-text", "markdown", plain),
)
