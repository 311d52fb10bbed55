"""Timecodes of videos and recordings."""

from __future__ import annotations

import re

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
