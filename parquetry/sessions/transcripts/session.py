"""Builder of one chat session, message by message: clean texts, stable ids, UTC."""

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
"""characters from which a name is made: a name as long as a whole file may recur with each of a thousand messages"""
_TIME_CHARACTERS = 100
_SPACE = re.compile(r"\s+")
_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\))")
"""terminal control sequences: colours, titles. Without their first character, which is dropped, they would be text."""
_EPOCH_MILLISECONDS = 1e11
"""threshold for milliseconds: as seconds, the number would be in the year 5138"""
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
    """Return the role for a format's word for a speaker; None for any other word."""
    return _ROLES.get(name.strip().lower()) if isinstance(name, str) else None


def instant(value: object) -> datetime | None:
    """Parse a time: ISO 8601, or seconds, milliseconds or microseconds since 1970.

    A time without a zone counts as UTC.

    Returns:
        None for anything else.
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
    """Message of the file from which a message, or a part of one, originates."""

    id: object = None
    """id in the file; any type"""
    at: object = None
    """time, in any form that `instant` reads"""


NOWHERE = Origin()
"""origin without id and time"""


def numbered(number: int) -> str:
    """Return the name of an unnamed session: its number in the file, or empty for the first.

    So the session of a file keeps its name when a second one is added.
    """
    return str(number) if number > 1 else ""


class SessionBuilder:
    """Collect the messages of one session.

    Args:
        format: `Transcript.format`.
        name: session name in the format; empty if it has none.
        title: title in the format.
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
        """tool names by call id, for results that refer only to the call"""

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
            role: of the author.
            text: left out if it is not text.
            origin: of the message; a number at the end distinguishes messages with one id.
            kind: of message.
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
        """Keep other data of the format about the session: the first scalar value of each key."""
        if key not in self._metadata and isinstance(value, str | int | float | bool) and value != "":
            self._metadata[key] = one_line(value) if isinstance(value, str) else value

    def build(self) -> Transcript | None:
        """Return the session; None if it contains no speech."""
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
    """Return a name or title on one line, without control characters, cut to a length."""
    return _SPACE.sub(" ", normalise(text[:_NAME_READ])).strip()[:_NAME_CHARACTERS].rstrip()
