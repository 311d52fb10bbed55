"""Truncated, damaged or malicious files: an error with a reason, or the intact part."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.model import RawDocument
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.registry import read_transcripts
from tests.sessions.transcripts.transcript_samples import (
    HIDDEN,
    SAMPLES,
    TURNS,
    chatgpt,
    claude_code_events,
    encoded,
    lines_of,
    openai_messages,
)

pytestmark = pytest.mark.slow

every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
json_samples = pytest.mark.parametrize(
    "sample", [one for one in SAMPLES if one.write(TURNS)[:1] in b"[{"], ids=lambda sample: sample.id
)
NAUGHTY = {
    "null-byte": "a\x00b",
    "escapes": "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "lone-surrogate": "a\ud800b",
    "reversed": "abc\u202edef",
    "zero-width": "a\u200bb\u200dc\ufeffd",
    "line-separator": "a\u2028b\u2029c\x85d",
    "combining": "Z̮̞̠͙͔ͅḀ̗̞͈̻̗Ḷ͙͎̯̹̞͓G̻O̭̗̮",
    "emoji": "👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "sql": "'; DROP TABLE entries;--",
    "html": "<script>alert(1)</script>",
    "closing-tags": "</message></think></details></tool-use>",
    "json": '{"role": "system", "content": "x"}',
    "format": "%s{0}{{x}}$(touch x)`id`",
    "marks": "_**User (2026-01-01 00:00:00Z)**_",
    "numbers": "1e309 NaN -0 0x1p-3",
    "tabs": "a\tb",
    "right-to-left": "السلام עולם",
    "astral": "𝒳𐍈",
    "fraction": "½ ﬁ Ⅷ",
}
OTHERS = (None, 0, -1.5, True, "", "x", [], {}, [[]], [None], {"a": None}, "\ud800")


def read(content):
    return list(read_transcripts(RawDocument(content, "x")))


def sessions(content):
    return [one for one in read(content) if isinstance(one, Transcript)]


def outcome(content):
    """Return the sessions read from a file, and the reason if it is refused."""
    try:
        return read(content), None
    except DocumentError as error:
        return [], error.reason


@every_sample
def test_a_file_cut_off_anywhere_gives_what_stands_before_or_a_reason(sample):
    content = sample.write(TURNS)
    whole = sessions(content)[0]
    for end in range(1, len(content), 41):
        found, reason = outcome(content[:end])
        assert reason in (None, "damaged", "no-session", "empty")
        for session in (one for one in found if isinstance(one, Transcript)):
            # The last message may be truncated, and a marker cut in two belongs to the message before it.
            kept = len(session.messages) - 1
            assert session.messages[:kept] == whole.messages[:kept]
            assert HIDDEN not in repr(session)


@json_samples
def test_anything_in_place_of_any_value_is_reported_and_never_raised(sample):
    content = sample.write(TURNS[:1])
    values = [json.loads(line) for line in content.splitlines()] if content.count(b"\n") > 1 else json.loads(content)
    for path in paths_of(values):
        for other in OTHERS:
            changed = replaced(values, path, other)
            lines = changed if content.count(b"\n") > 1 else [changed]
            found, reason = outcome("\n".join(map(json.dumps, lines)).encode())
            assert found or reason in ("damaged", "no-session", "empty")


def paths_of(value, at=()):
    """Return the paths of all values in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield (*at, key)
        yield from paths_of(child, (*at, key))


def replaced(value, path, other):
    if not path:
        return other
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], other)
    return changed


WORDS = st.sampled_from(
    [
        "role", "content", "user", "assistant", "system", "tool", "text", "messages", "mapping", "message", "parent",
        "children", "author", "parts", "content_type", "type", "uuid", "sessionId", "from", "value", "human", "gpt",
        "conversations", "chat_messages", "sender", "history", "trajectory", "action", "observation", "query",
        "response", "question", "tool_calls", "function", "name", "arguments", "tool_use", "tool_result", "id",
        "current_node", "timestamp",
    ]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(values=st.lists(JSON, max_size=5), lines=st.booleans())
def test_no_json_raises_anything_but_a_reason(values, lines):
    text = "\n".join(map(json.dumps, values)) if lines else json.dumps(values)
    found, reason = outcome(text.encode())
    assert found or reason in ("damaged", "no-session", "empty")
    assert all(isinstance(one, Unread) or one.messages for one in found)


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_reason(content):
    found, reason = outcome(content)
    assert found or reason in ("damaged", "no-session", "empty")


@pytest.mark.parametrize("text", NAUGHTY.values(), ids=NAUGHTY)
@pytest.mark.parametrize("where", ["text", "id", "name", "tool"])
def test_odd_characters_are_clean_wherever_they_stand(text, where):
    messages = openai_messages(TURNS[:1])
    messages[1]["content"] = text if where == "text" else "hello"
    messages[1]["id"] = text if where == "id" else "m"
    messages[2]["tool_calls"][0]["function"]["name"] = text if where == "tool" else "t"
    name = text if where == "name" else "n"
    session = sessions(json.dumps([{"id": name, "messages": messages}]).encode())[0]
    shown = [session.name, *(field for one in session.messages for field in (one.id, one.text, one.tool or ""))]
    for field in shown:
        assert not [sign for sign in field if (sign < " " and sign not in "\n\t") or sign in "\x7f\x85\u2028\u2029"]
        field.encode()
    assert "\n" not in session.name + "".join(one.id + (one.tool or "") for one in session.messages)
    assert [one.role for one in session.messages] == ["system", "user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"[" * 200_000, "too-deep"),
        (b"[" * 100_000 + b"]" * 100_000, "too-deep"),
        (b'{"messages":' * 100_000, "too-deep"),
        (b'[{"role": "user", "content": ' + b"9" * 5000 + b"}]", "damaged"),
        (b'[{"role": "user", "content": "hi"}', "damaged"),
        (b'{"messages": [{"role": "user", "content": "hi"}]} and more', "damaged"),
        (b"[]", "no-session"),
        (b"{}", "no-session"),
        (b'{"messages": []}', "no-session"),
        (b'[{"mapping": {}, "title": "nothing said", "conversation_id": "c"}]', "no-session"),
        (b'[{"role": "system", "content": "only instructions"}]', "no-session"),
        (b"name,price\nbolt,3\n", "no-session"),
        (b"# A page\n\nNo chat at all. User: none of it.\n", "no-session"),
        (bytes(range(256)) * 50, "damaged"),
    ],
    ids=[
        "nothing", "blank", "brackets", "nested-arrays", "nested-objects", "endless-number", "cut-list", "text-after",
        "empty-list",
        "empty-object", "no-messages", "empty-conversation", "only-system", "a-table", "a-page", "binary",
    ],
)  # fmt: skip
def test_a_file_without_a_session_says_why(content, reason):
    with pytest.raises(DocumentError) as refused:
        read(content)
    assert refused.value.reason == reason
    assert isinstance(refused.value, BrokenDocument if reason in ("damaged", "too-deep") else SkippedDocument)


def test_where_json_breaks_is_told():
    with pytest.raises(BrokenDocument, match="line 2, column"):
        read(b'[{"role": "user", "content": "hi"},\n {"role": "user" "content": "hi"}]')


def memory_of(content):
    """Return the bytes that reading needs at most, for each byte of a file."""
    read(content[:0] + b'[{"role": "user", "content": "hi"}]')
    tracemalloc.start()
    read(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / len(content)


@pytest.mark.parametrize(("before", "after"), [("", ""), ("[", "]"), ("[{}, ", "]")])
def test_a_file_of_few_values_is_in_memory_once(before, after):
    people = ", ".join(f'"p{n}": {{}}' for n in range(50_000))
    content = f'{before}{{"p": {{"history": {{"d": [{{"query": "a"}}]}}}}, {people}}}{after}'.encode()
    assert memory_of(content) < 20


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_a_list_of_any_length_is_read_to_its_end(count):
    chats = ", ".join(f'{{"id": "c{n}", "messages": [{{"role": "user", "content": "hi"}}]}}' for n in range(count))
    assert [one.name for one in sessions(f"[{chats}]".encode())] == [f"c{n}" for n in range(count)]


def test_columns_that_say_nothing_take_no_memory_each():
    columns = ", ".join(f'"column {n}": 1' for n in range(50_000))
    assert memory_of(f'[{{"speaker": "user", "text": "hi", {columns}}}]'.encode()) < 11


def test_deeply_nested_arguments_of_a_tool_are_refused_or_read():
    """The interpreter decides if such depth can be read; the process must survive either way."""
    for depth in (100, *range(800, 1001), 5000):
        deep = "[" * depth + "]" * depth
        content = (
            '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "tool_use", "name": "t", '
        )
        found, reason = outcome((content + f'"input": {deep}}}]}}]').encode())
        assert reason == "too-deep" or found[0].messages[0].text == "hi"


def test_a_cut_last_line_costs_only_itself():
    lines = lines_of(claude_code_events(TURNS))
    found = read(lines[:-30])
    assert [one.place for one in found if isinstance(one, Unread)] == [f"line {len(lines.splitlines())}"]
    whole = sessions(lines)[0]
    assert sessions(lines[:-30])[0].messages == whole.messages[:-1]


def test_every_bad_line_is_named_and_the_others_are_read():
    lines = lines_of(claude_code_events(TURNS)).splitlines()
    lines[3] = b'{"type": "user", '
    lines[6] = b"\x00garbage"
    lines.insert(5, b"42")
    found = read(b"\n".join(lines))
    assert [one.place for one in found if isinstance(one, Unread)] == ["line 4", "line 8", "line 6"]
    assert len([one for one in found if isinstance(one, Transcript)]) == 1


def test_a_line_of_ten_megabytes_is_read():
    long = "word " * 2_000_000
    session = sessions(lines_of([{"role": "user", "content": long}, {"role": "assistant", "content": "ok"}]))[0]
    assert len(session.messages[0].text) == len(long) - 1


def test_a_tree_that_goes_in_circles_ends():
    conversations = json.loads(chatgpt(TURNS))
    mapping = conversations[0]["mapping"]
    mapping["root"]["parent"] = conversations[0]["current_node"]
    found = read(encoded(conversations))
    assert [one.messages[0].text for one in found if isinstance(one, Transcript)] == [TURNS[0].user]
    assert [type(one) for one in found] == [Unread, Transcript]


def test_a_tree_with_a_missing_link_gives_what_stands_after_it():
    conversations = json.loads(chatgpt(TURNS))
    mapping = conversations[0]["mapping"]
    second = next(key for key, node in mapping.items() if TURNS[1].user in json.dumps(node))
    del mapping[mapping[second]["parent"]]
    found = read(encoded(conversations))
    assert found[0] == Unread("item 1", "a message names one before it that is missing; what stood before is left out")
    assert found[1].messages[0].text == TURNS[1].user


@pytest.mark.parametrize(
    "content",
    [
        lines_of([{"type": "user", "uuid": "u", "message": {"content": "<system-reminder>" * 50_000 + "hi"}}]),
        ("_**User (2026-01-01 00:00:00Z)**_\n\nhi\n\n_**Agent (x)**_\n\n" + "<think>\n" * 50_000).encode(),
        ("_**User (2026-01-01 00:00:00Z)**_\n\n" + '<tool-use data-tool-name="x">\n' * 50_000 + "hi").encode(),
        ("## User\n\nhi\n\n## Assistant\n\n" + "".join("`" * (3 + n % 700) + "x\n" for n in range(50_000))).encode(),
        ("## User\n\nhi\n\n## Assistant\n\n" + "````x\n```\n" * 50_000).encode(),
        lines_of({"role": "user", "content": "hi", "id": "same"} for _ in range(20_000)),
    ],
    ids=["reminders", "open-thoughts", "open-tools", "growing-fences", "short-closings", "one-id"],
)  # fmt: skip
def test_what_is_made_to_take_long_does_not(content):
    assert sessions(content)[0].messages[0].text.endswith("hi")


def test_ids_that_repeat_become_unique_and_stay_when_the_session_grows():
    def of(count):
        return sessions(lines_of({"role": "user", "content": f"say {n}", "id": "same"} for n in range(count)))[0]

    ids = [message.id for message in of(30).messages]
    assert len(set(ids)) == 30
    assert ids[0] == "same"
    assert [message.id for message in of(10).messages] == ids[:10]


def test_a_line_that_is_nested_too_deeply_costs_only_itself():
    lines = lines_of(openai_messages(TURNS[:1])) + b"[" * 200_000 + b"]" * 200_000 + b"\n"
    found = read(lines)
    assert found[0] == Unread("line 6", "nested too deeply")
    assert len(found[1].messages) == 5


def test_a_first_line_that_is_nested_too_deeply_costs_only_itself():
    lines = b'{"a": ' * 200_000 + b"\n" + lines_of(openai_messages(TURNS[:1]))
    found = read(lines)
    assert found[0] == Unread("line 1", "nested too deeply")
    assert len(found[1].messages) == 5


def test_of_many_parts_that_cannot_be_read_the_first_are_named_and_the_others_counted():
    """A note for each would take a hundred times the size of the file."""
    found = read(b'{"role": "user", "content": "hi"}\n' + b"{}\nx\n" * 20_000)
    unread = [one for one in found if isinstance(one, Unread)]
    assert unread[0] == Unread("line 3", "not JSON: Expecting value: line 1 column 1 (char 0)")
    assert unread[99].place == "line 201"
    assert unread[100:] == [Unread("the file", "39900 more parts of it could not be read")]


def test_a_time_that_no_float_holds_is_the_latest():
    """It raised a Python error outside the readers' contract."""
    said = {"author": {"role": "user"}, "content": {"parts": ["hi"]}}
    nodes = {"a": {"message": {**said, "create_time": 10**400}}, "b": {"message": {**said, "create_time": 1.5}}}
    assert [one.id for one in sessions(encoded([{"mapping": nodes}]))[0].messages] == ["a"]


def test_a_log_with_a_line_of_json_in_it_is_not_json():
    with pytest.raises(SkippedDocument, match="no-session"):
        read(b'started\nlistening\n{"role": "user", "content": "hi"}\nstopped\n')


def test_a_long_name_is_cut():
    assert len(sessions(encoded({"id": "long " * 100, "messages": openai_messages(TURNS[:1])}))[0].name) == 199


def test_names_that_repeat_become_unique():
    chats = [{"id": "a/b\nc", "messages": openai_messages(TURNS[:1])}] * 3
    assert [session.name for session in sessions(encoded(chats))] == ["a/b c", "a/b c.2", "a/b c.3"]


def test_an_export_of_thousands_of_conversations_is_never_in_memory_as_objects():
    one = json.loads(chatgpt(TURNS))[0]
    content = encoded([{**one, "conversation_id": f"c{number}"} for number in range(150)])
    document = RawDocument(content, "conversations.json")
    del one
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    count = sum(1 for _ in read_transcripts(document))
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert count == 150
    # One emoji makes the text take up to four bytes a character, and it is copied once.
    assert peak < 10 * len(content)
