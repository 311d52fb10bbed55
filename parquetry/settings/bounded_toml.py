"""Untrusted TOML, parsed by the standard library unless its nesting would make that fail or exhaust memory."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_DEPTH = 100
"""nesting of arrays and tables, and parts of a dotted key"""

_SIGN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
    r"|[][{}.=,\n]"
    r"|[^]\"'#\[{}.=,\s]++",
    re.DOTALL,
)


def loads(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        TOMLDecodeError: it is not TOML, or nested to `MAX_DEPTH` levels or more; a subclass of `ValueError`.
    """
    if _is_deep(text):
        raise tomllib.TOMLDecodeError(f"nested deeper than {MAX_DEPTH} levels (too-deep)")
    return tomllib.loads(text)


def _is_deep(text: str) -> bool:
    """Return True if brackets or dotted keys nest too deep; one pass, even over malformed text."""
    depth = parts = 0
    after_dot = False
    for found in _SIGN.finditer(text):
        sign = found[0]
        if sign[0] == "#":
            continue
        if sign == ".":
            parts += 1
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth = max(0, depth - 1)
        elif not after_dot:
            parts = 0
        if max(depth, parts) >= MAX_DEPTH:
            return True
        after_dot = sign == "."
    return False
