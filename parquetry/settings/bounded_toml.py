"""TOML of strangers: read by the standard library, unless it is nested so that this would fail or exhaust memory."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_DEPTH = 100
"""arrays and tables in each other, and parts of a dotted key"""

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
    """The values of a text in TOML.

    Raises:
        TOMLDecodeError: it is not TOML, or nested deeper than `MAX_DEPTH`; this is a `ValueError`.
    """
    if _is_deep(text):
        raise tomllib.TOMLDecodeError(f"nested deeper than {MAX_DEPTH} levels (too-deep)")
    return tomllib.loads(text)


def _is_deep(text: str) -> bool:
    """Whether brackets or the parts of a key go deeper than is allowed; one pass, whatever is wrong with the text."""
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
