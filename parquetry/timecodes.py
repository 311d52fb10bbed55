"""Timecodes of videos and recordings, and speech divided into sections under them."""

from __future__ import annotations

import re
from collections.abc import Iterable

SECTION_SECONDS = 30
"""seconds of speech under one timecode: about 75 words"""

_TIMECODE = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2})")


def timecode(seconds: float) -> str:
    """Write seconds as `12:34`, or as `1:02:03` from the first hour on."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def seconds_of(text: str) -> int | None:
    """Return the seconds of a timecode; None if the text is not one."""
    found = _TIMECODE.fullmatch(text)
    if found is None:
        return None
    return int(found[1] or 0) * 3600 + int(found[2]) * 60 + int(found[3])


def sections(spoken: Iterable[tuple[float, str]]) -> list[tuple[float, list[str]]]:
    """Divide speech into sections of half a minute.

    Args:
        spoken: second at which a piece begins, and its text, in order.

    Returns:
        The second at which each section begins, and its words; pieces without words are left out.
    """
    found: list[tuple[float, list[str]]] = []
    for start, text in spoken:
        words = text.split()
        if not words:
            continue
        if not found or start >= found[-1][0] + SECTION_SECONDS:
            found.append((start, []))
        found[-1][1].extend(words)
    return found
