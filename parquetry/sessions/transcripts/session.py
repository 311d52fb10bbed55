"""Builds one chat session message by message: clean texts, ids that last, UTC."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from parquetry.extract.builder import normalise
from parquetry.model import Scalar
from parquetry.sessions.model import Message, MessageKind, Role, Transcript

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")
_NAME_CHARACTERS = 200
_NAME_READ = 20 * _NAME_CHARACTERS
"""characters of which a name is made: one of a whole file may come back with each of a thousand messages"""
_TIME_CHARACTERS = 100
_SPACE = re.compile(r"\s+")
_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\))")
"""What a terminal is told to do: colours, titles. Without its first character, which is dropped, it would be text."""
_EPOCH_MILLISECONDS = 1e11
"""A number of seconds from here on would be in the year 5138: it counts milliseconds."""
_EPOCH_MICROSECONDS = 1e14

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "prompter", "customer", "me", "you"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "gpt", "chatgpt", "claude", "model", "agent", "bard", "bing", "gemini"), "assistant"
    ),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "tool_response", "function_response", "ipython"), "tool"),
}


def role_of(name: object) -> Role | None:
    """The role that a format's word for a speaker stands for; None if it is no such word."""
    return _ROLES.get(name.strip().lower()) if isinstance(name, str) else None


def instant(value: object) -> datetime | None:
    """A time as formats write it: ISO 8601, or seconds, milliseconds or microseconds since 1970.

    Without a zone it is taken for UTC.

    Returns:
        None if it is none of these.
    """
    if isinstance(value, str):
        if len(value) > _TIME_CHARACTERS:
            return None
        value = value.strip()
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
        else:
            return _utc(found)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0 or value > _EPOCH_MICROSECONDS**2:
        return None
    seconds = float(value)
    if not math.isfinite(seconds):
        return None
    if seconds >= _EPOCH_MICROSECONDS:
        seconds /= 1e6
    elif seconds >= _EPOCH_MILLISECONDS:
        seconds /= 1e3
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _utc(found: datetime) -> datetime | None:
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Origin:
    """The message of the file that something is, or is a part of."""

    id: object = None
    """as the file names it; anything"""
    at: object = None
    """when, in any form that `instant` reads"""


NOWHERE = Origin()
"""of what the file gives neither a name nor a time"""


def numbered(number: int) -> str:
    """The name of a session that has none: its number in the file, and nothing for the first.

    So the session of a file keeps its name when a second one comes to the file.
    """
    return str(number) if number > 1 else ""


class SessionBuilder:
    """Collects the messages of one session.

    Args:
        format: `Transcript.format`.
        name: as the format names the session; empty if it does not.
        title: as the format gives it.
    """

    def __init__(self, format: str, name: str = "", title: object = None) -> None:
        self._format = format
        self.name = one_line(name)
        self.title = title
        self._messages: list[Message] = []
        self._taken: dict[str, int] = {}
        self._metadata: dict[str, Scalar] = {}
        self._spoken = False
        self.tools: dict[str, str] = {}
        """names of tools by the ids of their calls, for the results that name only the call"""

    def add(
        self,
        role: Role,
        text: object,
        *,
        origin: Origin = NOWHERE,
        kind: MessageKind = "speech",
        tool: object = None,
    ) -> None:
        """Append a message; one without text is left out.

        Args:
            role: who it is from.
            text: anything that is no text is left out, too.
            origin: where it is from; messages of one id are told apart by a number at its end.
            kind: what it is.
            tool: name of the tool of a call or a result.
        """
        if not isinstance(text, str):
            return
        clean = normalise(_COLOURS.sub("", text), keep_layout=True).strip()
        if not clean:
            return
        named = one_line(tool) or None if isinstance(tool, str) else None
        self._messages.append(Message(self._unique(origin.id), role, kind, clean, instant(origin.at), named))
        self._spoken = self._spoken or (kind == "speech" and role in ("user", "assistant"))

    def note(self, key: str, value: object) -> None:
        """Keep what else the format tells about the session: the first value of each key that is a scalar."""
        if key not in self._metadata and isinstance(value, str | int | float | bool) and value != "":
            self._metadata[key] = one_line(value) if isinstance(value, str) else value

    def build(self) -> Transcript | None:
        """The session; None if nobody said anything in it."""
        if not self._spoken:
            return None
        title = one_line(self.title) if isinstance(self.title, str) else ""
        return Transcript(self.name, title or None, self._format, tuple(self._messages), dict(self._metadata))

    def _unique(self, given: object) -> str:
        known = str(given) if isinstance(given, str) or (isinstance(given, int) and abs(given) < 2**63) else ""
        base = known if _ID.fullmatch(known) else f"m{len(self._messages) + 1}"
        found = base
        while found in self._taken:
            self._taken[base] += 1
            found = f"{base}.{self._taken[base]}"
        self._taken[found] = 1
        return found


def one_line(text: str) -> str:
    """A name or title of one line, without control characters, cut to a length."""
    return _SPACE.sub(" ", normalise(text[:_NAME_READ])).strip()[:_NAME_CHARACTERS].rstrip()
