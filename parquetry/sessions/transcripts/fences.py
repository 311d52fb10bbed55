"""Code blocks in a Markdown log; no line inside one is a mark of the log."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)([^\n]*)$")


def in_code(lines: Sequence[str]) -> list[bool]:
    """Return True for each line in a fenced code block, fences included.

    A fence that is never closed does not count: an answer that broke off must not swallow the rest of a log.
    """
    inside = [False] * len(lines)
    fences = [
        (number, found[1], found[2].strip()) for number, line in enumerate(lines) if (found := _FENCE.match(line))
    ]
    closers = {
        sign: [(number, len(fence)) for number, fence, info in fences if fence[0] == sign and not info] for sign in "`~"
    }
    longest = {sign: _longest_to_come(candidates) for sign, candidates in closers.items()}
    next_closer = {"`": 0, "~": 0}
    end = -1
    for number, fence, info in fences:
        sign, length = fence[0], len(fence)
        if number <= end or (sign == "`" and "`" in info):
            continue
        candidates, place = closers[sign], next_closer[sign]
        while place < len(candidates) and candidates[place][0] <= number:
            place += 1
        next_closer[sign] = place
        if longest[sign][place] < length:
            continue
        while candidates[place][1] < length:
            place += 1
        end = candidates[place][0]
        inside[number : end + 1] = [True] * (end + 1 - number)
    return inside


def _longest_to_come(closers: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each closing fence the length of the longest fence from there on, and 0 after the last."""
    longest = [0]
    for _, length in reversed(closers):
        longest.append(max(length, longest[-1]))
    return longest[::-1]
