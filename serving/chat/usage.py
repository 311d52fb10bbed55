"""Tokens that model services say they took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def added_usage(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of two statements of usage; details that only one has stay."""
    found = dict(one)
    for name, value in other.items():
        known = found.get(name)
        if isinstance(value, dict):
            found[name] = added_usage(known if isinstance(known, dict) else {}, value)
        elif _is_count(value) and _is_count(known):
            found[name] = known + value
        elif value is not None or known is None:
            found[name] = value
    return found


def tokens_of(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Return tokens read and written; 0 for what is not told."""
    counts = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    read, written = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
    return read, written


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
