"""What a mistyped name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_NEAREST = 3
_SHOWN = 80
"""characters of a name"""
_LISTED = 8
"""names that are listed when none is near"""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like a name, the most likely first."""
    return difflib.get_close_matches(name, sorted(set(known)), n=_NEAREST, cutoff=0.5)


def hint(name: str, known: Iterable[str]) -> str:
    """A question or a list for the end of a message about an unknown name."""
    names = sorted(set(known))
    near = nearest(name, names)
    if near:
        return f"did you mean {' or '.join(map(_short, near))}?"
    more = ", ..." if len(names) > _LISTED else ""
    return f"it has {', '.join(map(_short, names[:_LISTED]))}{more}" if names else "it has none"


def _short(name: str) -> str:
    """A name as a person can read it: of a long one both ends."""
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}"
