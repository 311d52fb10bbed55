"""The newest audit events, read from the ends of their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from parquetry.serving.access.audit import COLUMNS, audit_files

MOST_READ = 16 * 1024 * 1024
"""bytes that are searched for events at most: about 40,000 events"""
_BLOCK = 64 * 1024
"""bytes that are read at a time"""


def recent_events(
    state: Path, wanted: Callable[[dict[str, Any]], bool], most: int, most_read: int = MOST_READ
) -> tuple[list[dict[str, Any]], bool]:
    """Return the newest audit events of a kind, newest first; each has the members `COLUMNS`.

    The time that it takes follows the number of events that are read, not the number of those that are kept.

    Args:
        state: state folder of the service.
        wanted: returns True for an event to be returned.
        most: maximum number of events.
        most_read: maximum number of bytes to search.

    Returns:
        The events, and True if older ones were not searched.
    """
    found: list[dict[str, Any]] = []
    read = 0
    for file in reversed(audit_files(state)):
        for line in _lines_backwards(file):
            read += len(line) + 1
            if read > most_read:
                return found, True
            event = _event(line)
            if event is None or not wanted(event):
                continue
            if len(found) == most:
                return found, True
            found.append(event)
    return found, False


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        # Cut off by a full disk.
        return None
    return {name: event.get(name) for name in COLUMNS} if isinstance(event, dict) else None


def _lines_backwards(file: Path) -> Iterator[bytes]:
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        # Put aside, or deleted as the oldest, since the folder was listed.
        return
    with opened:
        place, rest = opened.seek(0, 2), b""
        while place:
            size = min(_BLOCK, place)
            place -= size
            opened.seek(place)
            first, *lines = (opened.read(size) + rest).split(b"\n")
            yield from (line for line in reversed(lines) if line)
            rest = first
        if rest:
            yield rest
