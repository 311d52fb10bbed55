"""Suggestions for a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_NEAREST = 3
_SHOWN = 80
"""maximum characters of a displayed name"""
_LISTED = 8
"""maximum names listed if none is similar"""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names most similar to a name, the most likely first."""
    return difflib.get_close_matches(name, sorted(set(known)), n=_NEAREST, cutoff=0.5)


def hint(name: str, known: Iterable[str]) -> str:
    """Return a question or a list for the end of a message about an unknown name."""
    names = sorted(set(known))
    near = nearest(name, names)
    if near:
        return f"did you mean {' or '.join(map(_short, near))}?"
    more = ", ..." if len(names) > _LISTED else ""
    return f"it has {', '.join(map(_short, names[:_LISTED]))}{more}" if names else "it has none"


def _short(name: str) -> str:
    """Shorten a long name to both its ends."""
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}"
