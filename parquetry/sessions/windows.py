"""Windows: parts of a chat session that a language model reads at once, and the record of how much was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from parquetry.ids import messages_hash
from parquetry.sessions.model import Message, Transcript, Window
from parquetry.settings.llm import SessionsSettings

TOOL_CHARACTERS = 2000
"""maximum characters of a tool call, tool result or thought; the middle of a longer one is cut, its ends say most"""
_FRAME_CHARACTERS = 60
"""characters of a message besides its text: its id, its role, its time"""
_CONTEXT_SHARE = 4
"""divisor of a window's characters that bounds the messages read before"""
_CONTEXT_CHARACTERS = 100
"""minimum characters of a message shown as context"""


Stretch = tuple[int, int]
"""range of a session's messages: 0-based index of the first, and one past the last"""


@dataclass(frozen=True, slots=True)
class Mark:
    """Reading position in a session."""

    messages: int
    """number of messages read, from the beginning"""
    hash: str
    """`parquetry.ids.messages_hash` of these messages"""


def processed_mark(messages: Sequence[Message]) -> Mark:
    """Return the mark of a session with all these messages read."""
    return Mark(len(messages), messages_hash(_identity(message) for message in messages))


def first_new(messages: Sequence[Message], mark: Mark | None) -> int:
    """Return the index of the first unread message of a session.

    Args:
        messages: of the session as it is now.
        mark: of the last reading; None if there was none.

    Returns:
        0 if the session was never read or has changed before the mark; the number of messages if nothing is new.
    """
    if mark is None or processed_mark(messages[: mark.messages]) != mark:
        return 0
    return mark.messages


def windows(transcript: Transcript, first_new: int, settings: SessionsSettings) -> list[Window]:
    """Cut the new part of a session into windows, between turns where possible.

    A turn begins with speech of the user. A turn too long for a window is cut between messages; a message too long for
    one is cut into parts, each with the message's id.

    Args:
        transcript: the whole session.
        first_new: index of the first message to learn from; earlier ones serve only as context.
        settings: `window_characters` bounds the texts of a window, context included; `overlap_messages` the number of
            messages of its context; without `include_tools`, tool use and thoughts are left out.

    Returns:
        Windows in order; none if nothing is new.
    """
    room = settings.window_characters
    context_room = room // _CONTEXT_SHARE if settings.overlap_messages else 0
    shown = [
        (index, _shortened(message, TOOL_CHARACTERS) if message.kind != "speech" else message)
        for index, message in enumerate(transcript.messages)
        if settings.include_tools or message.kind == "speech"
    ]
    before = [message for index, message in shown if index < first_new]
    new = [part for index, message in shown if index >= first_new for part in _parts(message, room - context_room)]
    found: list[Window] = []
    for group in _packed(new, room - context_room):
        found.append(Window(len(found), _context(before, settings.overlap_messages, context_room), tuple(group)))
        before = [*before[-settings.overlap_messages :], *group] if settings.overlap_messages else []
    return found


def windows_to_read(
    transcript: Transcript, first_new: int, retried: Iterable[Stretch], settings: SessionsSettings
) -> Iterator[Window]:
    """Yield the windows of retried stretches, then those of the new part, cut as by `windows`."""
    for start, end in retried:
        yield from windows(replace(transcript, messages=transcript.messages[:end]), start, settings)
    yield from windows(transcript, first_new, settings)


def stretch_of(transcript: Transcript, window: Window) -> Stretch:
    """Return the position of a window's messages in their session; a message included in part counts as whole."""
    places = {message.id: index for index, message in enumerate(transcript.messages)}
    held = [places[message.id] for message in window.messages]
    return min(held), max(held) + 1


def _identity(message: Message) -> tuple[str, ...]:
    return (message.id, message.role, message.kind, message.tool or "", message.text)


def _weight(message: Message) -> int:
    return len(message.text) + _FRAME_CHARACTERS


def _shortened(message: Message, limit: int) -> Message:
    """Return the message with the middle of its text left out if it is longer than `limit` characters."""
    text = message.text
    if len(text) <= limit:
        return message
    mark = f"\n[{len(text) - limit:,} characters left out]\n"
    kept = max(limit - len(mark), 0)
    head = kept * 3 // 4
    tail = kept - head
    return replace(message, text=(text[:head] + mark + (text[-tail:] if tail else ""))[:limit])


def _parts(message: Message, room: int) -> Iterator[Message]:
    """Yield the message, or parts of at most `room` characters, cut at a line or a word if there is one."""
    text = message.text
    longest = max(room - _FRAME_CHARACTERS, 1)
    start = 0
    while len(text) - start > longest:
        end = start + longest
        for separator in ("\n\n", "\n", " "):
            found = text.rfind(separator, start + longest // 2, end)
            if found > 0:
                end = found + len(separator)
                break
        yield replace(message, text=text[start:end])
        start = end
    yield replace(message, text=text[start:]) if start else message


def _packed(messages: Sequence[Message], room: int) -> Iterator[list[Message]]:
    """Yield messages in groups of at most `room` characters: whole turns together, then whole messages."""
    group: list[Message] = []
    taken = 0
    for turn in _turns(messages):
        weight = sum(map(_weight, turn))
        if group and taken + weight > room:
            yield group
            group, taken = [], 0
        if weight <= room:
            group += turn
            taken += weight
            continue
        for message in turn:
            if group and taken + _weight(message) > room:
                yield group
                group, taken = [], 0
            group.append(message)
            taken += _weight(message)
    if group:
        yield group


def _turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    turn: list[Message] = []
    for message in messages:
        if turn and message.role == "user" and message.kind == "speech" and message.id != turn[-1].id:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _context(before: Sequence[Message], overlap: int, room: int) -> tuple[Message, ...]:
    """Return the last messages before a window, each cut so that all of them fit into `room` characters."""
    overlap = min(overlap, room // (_CONTEXT_CHARACTERS + _FRAME_CHARACTERS))
    if not overlap:
        return ()
    return tuple(_shortened(message, room // overlap - _FRAME_CHARACTERS) for message in before[-overlap:])
