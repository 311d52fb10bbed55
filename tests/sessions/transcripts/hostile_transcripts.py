"""Chat files built to exhaust their readers: name -> function of a size in bytes."""

# ruff: noqa: E501 (one class on one line)

from __future__ import annotations

import json

from tests.extract.hostile_shapes import Hostile, halves, nested, numbered, repeated

_SAID = '{"role": "user", "content": "hi"}'
_LOG = '{"type": "user", "uuid": "u", "sessionId": "s", "timestamp": 1, "message": {"role": "user", "content": "hi"}}\n'
_TALK = '{"conversation_id": "c", "mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["hi"]}}, "parent": null, "children": []}'


def _json(piece: str, before: str = "", after: str = "", join: str = ", ") -> Hostile:
    """Return numbered pieces of JSON with commas between them."""
    return numbered("chat.json", piece, before, after, join)


def _lines(piece: str, before: str = "") -> Hostile:
    return numbered("chat.jsonl", piece + "\n", before)


def _text(piece: str, before: str = "", after: str = "") -> Hostile:
    return repeated("chat.md", piece, before, after)


def _event(content: object, **more: object) -> str:
    event = {
        "type": "user",
        "uuid": "u@",
        "sessionId": "s",
        "timestamp": 1,
        "message": {"role": "user", "content": content},
    }
    return json.dumps(event | more)


def _said(piece: str) -> Hostile:
    """Return one user message of a Claude Code log, built from a piece."""
    before, after = json.dumps(_event("^"))[1:-1].replace('\\"', '"').split("^")
    return repeated("chat.jsonl", json.dumps(piece)[1:-1], before, after + "\n")


def _chain(size: int) -> tuple[bytes, str]:
    """Return a ChatGPT tree in which every message answers the previous one, without a current message."""
    nodes = [
        f'"{n}": {{"message": {{"author": {{"role": "user"}}, "content": {{"parts": ["hi"]}}}}, "parent": {f"{json.dumps(str(n - 1))}" if n else "null"}, "children": []}}'
        for n in range(max(1, size // 110))
    ]
    return ('{"mapping": {' + ", ".join(nodes) + "}}").encode(), "chat.json"


def _falling_fences(size: int) -> tuple[bytes, str]:
    """Return fences, each shorter than the previous one; the many short ones that follow close none of them."""
    most = int((size / 2) ** 0.5)
    falling = "".join("`" * n + " x\n" for n in range(most, 3, -1))
    return ("## User\n\nhi\n\n## Assistant\n\n" + falling + "```\n" * ((size - len(falling)) // 4)).encode(), "chat.md"


def _unclosed_fences(size: int) -> tuple[bytes, str]:
    return ("## User\n\nhi\n\n## Assistant\n\n" + "```x\n~~~x\n" * (size // 10)).encode(), "chat.md"


_JSON: dict[str, Hostile] = {
    "nested arrays": nested("chat.json", "[", "]"),
    "nested objects": nested("chat.json", '{"messages":', "}", "1"),
    "opened arrays": repeated("chat.json", "["),
    "nested content": nested("chat.json", "[", "]", "1", '[{"role": "user", "content": ', "}]"),
    "array of numbers": repeated("chat.json", "1,", "[" + _SAID + ",", "1]"),
    "spaces": repeated("chat.json", " ", "[" + _SAID, "]"),
    "spaces before what is wrong": repeated("chat.json", " ", "[" + _SAID, "x"),
    "long number": repeated("chat.json", "1", "[" + _SAID + ",0.", "]"),
    "long exponent": repeated("chat.json", "1", "[" + _SAID + ",1e", "]"),
    "long string": repeated("chat.json", "\\u0041", '[{"role": "user", "content": "', '"}]'),
    "same keys": repeated("chat.json", '"role": "user", ', "[{", '"content": "hi"}]'),
    "many keys": _json('"k@": 1', "[{", ', "role": "user", "content": "hi"}]'),
    "bad lines": repeated("chat.jsonl", "{}\nx\n", _SAID + "\n"),
    "good and bad lines": repeated("chat.jsonl", _SAID + "\nx\n"),
    "lines of nothing": repeated("chat.jsonl", "{}\n", _SAID + "\n"),
    "lines nested": repeated("chat.jsonl", _SAID + "\n" + "[" * 1100 + "]" * 1100 + "\n"),
    "carriage returns": repeated("chat.jsonl", "\r", _SAID + "\n"),
    "blank lines": repeated("chat.jsonl", " \n", _SAID + "\n"),
    "text that begins as JSON": repeated("chat.json", '{"a":\n', ""),
}  # fmt: skip
_MESSAGES: dict[str, Hostile] = {
    "openai: messages": _lines(_SAID),
    "openai: one id": _lines('{"role": "user", "content": "hi", "id": "a"}'),
    "openai: ids with numbers": numbered("chat.jsonl", '{"role": "user", "content": "hi", "id": "a.@"}\n{"role": "user", "content": "hi", "id": "a"}\n'),
    "openai: ids that are numbers": _lines('{"role": "user", "content": "hi", "id": @}'),
    "openai: ids that will be given": _lines('{"role": "user", "content": "hi", "id": "m@"}'),
    "openai: chats of one name": _json('{"id": "a", "messages": [' + _SAID + "]}", "[", "]"),
    "openai: chats without a name": _json('{"messages": [' + _SAID + "]}", "[", "]"),
    "openai: chats with numbers": _json('{"id": "@", "messages": [' + _SAID + ']}, {"messages": [' + _SAID + "]}", "[", "]"),
    "openai: no messages": _json('{"role": "x"}', '{"messages": [' + _SAID + ", ", "]}"),
    "openai: calls": _json('{"id": "c@", "function": {"name": "t", "arguments": "{}"}}', '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [', "]}]"),
    "openai: a long name of a tool": halves("chat.json", "t", '{"role": "tool", "tool_call_id": "c", "content": "x"}, ', '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": {"arguments": "{}", "name": "', '"}}]}, ', "{}]"),
    "openai: results": _json('{"role": "tool", "tool_call_id": "c@", "content": {"a": 1}}', "[" + _SAID + ", ", "]"),
    "openai: parts": _json('{"type": "text", "text": "a"}', '[{"role": "user", "content": [', "]}]"),
    "openai: colours": repeated("chat.json", "\\u001b[", '[{"role": "user", "content": "', '"}]'),
    "openai: long colour": repeated("chat.json", "0;", '[{"role": "user", "content": "\\u001b[', '"}]'),
    "openai: titles of terminals": repeated("chat.json", "\\u001b]a", '[{"role": "user", "content": "', '"}]'),
    "openai: long title of a terminal": repeated("chat.json", "\\u001b]" + "a" * 900, '[{"role": "user", "content": "', '"}]'),
    "openai: spaces in a name": repeated("chat.json", " \\t", '[{"id": "a', 'b", "messages": [' + _SAID + "]}]"),
    "openai: line breaks": repeated("chat.json", "\\n \\n", '[{"role": "user", "content": "', 'x"}]'),
    "openai: accents": repeated("chat.json", "\\u0301\\u0327", '[{"role": "user", "content": "x', '"}]'),
    "openai: half letters": repeated("chat.json", "\\ud800", '[{"role": "user", "content": "x', '"}]'),
    "anthropic: blocks": _json('{"type": "tool_use", "id": "t@", "name": "n", "input": {"a": 1}}', '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": [', "]}]"),
    "anthropic: results": _json('{"type": "tool_result", "tool_use_id": "t@", "content": [{"type": "text", "text": "x"}]}', '[{"role": "user", "content": "hi"}, {"role": "user", "content": [', "]}]"),
    "anthropic: thoughts": _json('{"type": "thinking", "thinking": "x"}', '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": [', "]}]"),
    "anthropic: deep input": nested("chat.json", "[", "]", "1", '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "tool_use", "name": "n", "input": ', "}]}]"),
    "chatgpt: conversations": _json(_TALK.replace('"c"', '"c@"') + "}}", "[", "]"),
    "chatgpt: conversations of one name": _json(_TALK + "}}", "[", "]"),
    "chatgpt: chain": _chain,
    "chatgpt: leaves": _json('"@": {"message": {"create_time": @}, "children": []}', _TALK + ", ", "}}"),
    "chatgpt: parts": _json('"a"', '{"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": [', "]}}}}}"),
    "chatgpt: endless instants": repeated("chat.json", "9" * 400 + ",", '{"mapping": {"a": {"message": {"author": {"role": "user"}, "create_time": ' + "9" * 400 + ', "content": {"parts": ["hi"]}}}}, "x": [', "1]}"),
    "claude-ai: messages": _json('{"sender": "human", "text": "hi", "uuid": "u@"}', '[{"uuid": "c", "chat_messages": [', "]}]"),
    "claude-ai: attachments": _json('{"file_name": "a", "extracted_content": "b"}', '[{"uuid": "c", "chat_messages": [{"sender": "human", "text": "hi", "attachments": [', "]}]}]"),
    "claude-ai: nobody": _json('{"sender": "x"}', '[{"chat_messages": [{"sender": "human", "text": "hi"}, ', "]}]"),
    "claude-code: events": _lines(_event("hi")),
    "claude-code: sessions": _lines(_event("hi", sessionId="s@")),
    "claude-code: one event": repeated("chat.jsonl", _LOG),
    "claude-code: a long summary": halves("chat.jsonl", "x", _event("hi", sessionId="s@") + "\n", '{"type": "summary", "leafUuid": "u", "summary": "', '"}\n' + _LOG),
    "claude-code: summaries": _lines('{"type": "summary", "leafUuid": "u", "summary": "x"}', _LOG),
    "claude-code: no events": repeated("chat.jsonl", '{"a": 1}\n', _LOG),
    "claude-code: loglines": _json(_event("hi"), '{"loglines": [', "]}"),
    "claude-code: deep message": nested("chat.jsonl", "[", "]", "1", _LOG + '{"type": "user", "uuid": "v", "sessionId": "s", "message": {"content": ', "}}\n"),
    "claude-code: reminders": _said("<system-reminder>"),
    "claude-code: closed reminders": _said("<system-reminder></system-reminder>"),
    "claude-code: ends of reminders": _said("</system-reminder>"),
    "claude-code: commands": _said("<command-name>"),
    "claude-code: arguments of commands": _said("<command-name>a<command-args>"),
    "claude-code: output": _said("<bash-stdout>"),
    "claude-code: shell": _said("<bash-input>"),
    "sharegpt: turns": _json('{"from": "human", "value": "hi"}', '[{"id": "a", "conversations": [', "]}]"),
    "sharegpt: conversations": _json('{"conversations": [{"from": "human", "value": "hi"}]}', "[", "]"),
    "sharegpt: nobody": _json('{"from": "x", "value": "hi"}', '[{"conversations": [{"from": "human", "value": "hi"}, ', "]}]"),
    "swe-agent: steps": _json('{"action": "ls", "observation": "a", "thought": "b"}', '{"trajectory": [', "]}"),
    "swe-agent: history": _json('{"role": "assistant", "content": "a", "action": "b"}', '{"history": [{"role": "user", "content": "hi"}, ', "]}"),
    "swe-agent: nobody": _json('{"role": "x"}', '{"history": [{"role": "user", "content": "hi"}, ', "]}"),
    "memorybank: people": _json('"p@": {"history": {"d": [{"query": "a", "response": "b"}]}}', "{", "}"),
    "memorybank: days": _json('"d@": [{"query": "a", "response": "b"}]', '{"p": {"history": {', "}}}"),
    "memorybank: nobody": _json('"p@": 1', '{"p": {"history": {"d": [{"query": "a"}]}}, ', "}"),
    "memorybank: a long name and its days": lambda size: (('{"' + "p" * (size // 2) + '": {"history": {' + ", ".join(f'"d{n}": [{{"query": "a"}}]' for n in range(size // 50)) + "}}}").encode(), "chat.json"),
    "memorybank: a long name and nobody": halves("chat.json", "p", "{}, ", '{"', '": {"history": {"d": [{"query": "a"}, ', "{}]}}}"),
    "memorybank: a long day": halves("chat.json", "d", '{"query": "a"}, ', '{"p": {"history": {"', '": [', "{}]}}}"),
    "memorybank: empty exchanges": _json("{}", '{"p": {"history": {"d": [{"query": "a"}, ', "]}}}"),
    "bfcl: turns": _json('[{"role": "user", "content": "hi"}]', '{"id": "a", "question": [', "]}"),
    "bfcl: tasks": _lines('{"id": "a", "question": [[{"role": "user", "content": "hi"}]]}'),
    "bfcl: no messages": _json("1", '{"question": [[{"role": "user", "content": "hi"}, ', "]]}"),
}  # fmt: skip
_ROW = '{"speaker": "user", "text": "hi", "session": "@"}'
_TABLES: dict[str, Hostile] = {
    "rows: sessions": _lines(_ROW),
    "rows: one session": _lines(_ROW.replace("@", "s")),
    "rows: no rows": _lines('{"a": 1}', _ROW + "\n"),
    "rows: people": _lines('{"speaker": "user @", "text": "hi"}'),
    "rows: a long name of a column": halves("chat.jsonl", "!", '{"a": 1}\n', '{"role": "user", "text', '": "hi"}\n'),
    "rows: columns": _json('"k@": 1', '[{"speaker": "user", "text": "hi", ', "}]"),
    "rows: long numbers": _lines('{"speaker": "user", "text": ' + "9" * 4000 + "}"),
    "csv: rows": repeated("chat.csv", "user,hi\n", "role,content\n"),
    "csv: short rows": repeated("chat.csv", "a\n", "role,content\nuser,hi\n"),
    "csv: a long name of a column": halves("chat.csv", "!", "a\n", "role,content", "\nuser,hi\n"),
    "csv: columns": repeated("chat.csv", ",a", "role,content", "\nuser,hi\n"),
    "csv: columns and rows": halves("chat.csv", ",a", "user,hi\n", "role,content", "\n"),
    "csv: quotation marks": repeated("chat.csv", '"', "role,content\nuser,hi\n"),
    "csv: open quotation marks": repeated("chat.csv", '"\n', "role,content\nuser,hi\n"),
    "csv: an open quotation mark": repeated("chat.csv", "user,hi\n", 'role,content\nuser,"'),
    "csv: empty rows": repeated("chat.csv", ",\n", "role,content\nuser,hi\n"),
    "dialog-table: rows": repeated("chat.csv", 'x,"User 1: hi\nUser 2: ho"\n', "persona,conversation\n"),
    "dialog-table: lines": repeated("chat.csv", "User 1: hi\n", 'persona,conversation\nx,"', '"\n'),
    "dialog-table: a long name of a column": halves("chat.csv", "!", "x,y\n", "persona,chat", '\nx,"User 1: hi\nUser 2: ho"\n'),
    "dialog-table: columns": repeated("chat.csv", "chat,", "persona,", '\nx,"User 1: hi\nUser 2: ho"\n'),
    "dialog-table: no conversations": repeated("chat.csv", "x,y\n", 'persona,conversation\nx,"User 1: hi\nUser 2: ho"\n'),
    "dialog-table: words before a colon": repeated("chat.csv", "Aa ", 'persona,conversation\nx,"User 1: hi\nUser 2: ho\n', '"\n'),
    "dialog-table: spaces": repeated("chat.csv", " \t", 'persona,conversation\nx,"User 1: hi\nUser 2: ho\n', '"\n'),
}  # fmt: skip
_SPEC = "_**User (2026-01-01 00:00:00Z)**_\n\nhi\n\n"
_AGENT = "_**Agent (x)**_\n\n"
_MARKDOWN: dict[str, Hostile] = {
    "specstory: marks": _text(_SPEC),
    "specstory: sessions": _text("<!-- Claude Code Session s (x) -->\n" + _SPEC),
    "specstory: thoughts": _text("<think>x</think>\n", _SPEC + _AGENT),
    "specstory: open thoughts": _text("<think>\n", _SPEC + _AGENT),
    "specstory: open tools and thoughts": _text("<think>\n<tool-use>\n", _SPEC + _AGENT),
    "specstory: open tools, each under its mark": _text("_**Agent (x)**_\n\n<tool-use>\n", _SPEC),
    "specstory: tools": _text('<tool-use data-tool-name="x">\n```\na\n```\n</tool-use>\n', _SPEC + _AGENT),
    "specstory: fences in a tool": _text("``` ```\n", _SPEC + _AGENT + '<tool-use data-tool-name="x">\n', "</tool-use>\n"),
    "specstory: odd fences in a tool": _text("``` ```\n", _SPEC + _AGENT + '<tool-use data-tool-name="x">\nx ```\n', "</tool-use>\n"),
    "specstory: spaces before an end": _text(" ", _SPEC + _AGENT + "<think>\n</details>", "x</think>\n"),
    "specstory: lines before an end": _text("\n", _SPEC + _AGENT + "<think>\n</details>", "x</think>\n"),
    "specstory: ends": _text("</details> </think> ", _SPEC + _AGENT + "<think>\n", "x</think>\n"),
    "specstory: summaries": _text("<summary>", _SPEC + _AGENT + "<think>\n", "</think>\n"),
    "specstory: attributes": _text(" a", _SPEC + _AGENT + "<tool-use", ">\n</tool-use>\n"),
    "specstory: names of tools": _text(' data-tool-name="', _SPEC + _AGENT + "<tool-use", ">\n</tool-use>\n"),
    "specstory: rules": _text("---\n", _SPEC),
    "specstory: titles": _text("# x 2026-01-01 00:00\n", "", _SPEC),
    "specstory: long title": _text("2026-01-01 00:00 ", "# x ", "\n" + _SPEC),
    "specstory: a long title and its sessions": halves("chat.md", "a ", "<!-- Claude Code Session s (x) -->\n" + _SPEC, "# ", "\n"),
    "specstory: long mark": _text("2026-01-01 00:00 ", _SPEC + "_**Agent (", ")**_\n\nho\n"),
    "specstory: long session": _text("a ", "<!-- ", " Session s -->\n" + _SPEC),
    "aider: sessions": _text("# aider chat started at 2026-01-01\n#### hi\n"),
    "aider: marks": _text("#### hi\n\n> x\n", "# aider chat started at 2026-01-01\n"),
    "aider: a start": _text(" ", "# aider chat started at 2026-01-01", "x\n#### hi\n"),
    "aider: a long start": halves("chat.md", "1", "#### hi\nho\n", "# aider chat started at ", "\n"),
    "aider: fences": _text("```x\n", "# aider chat started at 2026-01-01\n#### hi\n"),
    "aider: lines of a program": _text("> \n\n", "# aider chat started at 2026-01-01\n#### hi\n"),
    "markdown: marks": _text("## User\n\nhi\n\n## Assistant\n\nho\n\n"),
    "markdown: inline marks": _text("Human: hi\nAI: ho\n"),
    "markdown: rules": _text("---\n", "## User\n\nhi\n\n## Assistant\n\nho\n"),
    "markdown: rising fences": lambda size: (("## User\n\nhi\n\n## Assistant\n\n" + "".join("`" * n + "x\n" for n in range(3, int((2 * size) ** 0.5)))).encode(), "chat.md"),
    "markdown: falling fences": _falling_fences,
    "markdown: unclosed fences": _unclosed_fences,
    "markdown: short closings": _text("````x\n```\n", "## User\n\nhi\n\n## Assistant\n\n"),
    "markdown: a fence": _text("`", "## User\n\nhi\n\n## Assistant\n\n", "\n"),
    "markdown: spaces of a mark": _text(" ", "## User\n\nhi\n\n## Assistant", "x\n\n## Assistant\n\nho\n"),
    "markdown: signs of a mark": _text("#", "## User\n\nhi\n\n## Assistant\n\nho\n\n## User ", "x\n"),
    "markdown: dots of a mark": _text("4.", "## User\n\nhi\n\n## Assistant\n\nho\n\n## GPT-", "x\n"),
}  # fmt: skip
CLASSES = {f"chat, {name}": build for name, build in (_JSON | _MESSAGES | _TABLES | _MARKDOWN).items()}
