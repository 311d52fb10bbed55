"""Publishes of this process: what an interrupt can say of them."""

from __future__ import annotations

_made: list[int] = []
"""the latest version, once there is one"""


def begin() -> None:
    """Forget earlier publishes: a command begins."""
    _made.clear()


def note(version: int) -> None:
    """Take note of a version that this process has just published."""
    _made[:] = [version]


def outcome() -> str:
    """Return what was published since the command began, in words."""
    return f"version {_made[-1]} was published" if _made else "nothing was published"
