"""Output of terminals: colours and other control sequences, and characters typed over others.

Sequences are those of ECMA-48 and of xterm. All patterns take linear time.
"""

from __future__ import annotations

import re

_CODE = (
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]"  # colours, movements of the cursor
    r"|[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)"  # titles of windows, addresses of links
    r"|[ -/]++[0-~]|[0-OQ-WYZ\\`-~])"  # character sets, resets
)
_SEQUENCE = re.compile(_CODE)
_HIDDEN = re.compile(_CODE.encode() + rb"|[^\x00-\x1f\x7f]\x08++")
"""bytes that a terminal does not show; backspaces follow those that are typed over"""


def as_shown(text: str) -> str:
    """Return text as a terminal shows it: without control sequences, and with what was typed over the rest.

    Programs underline a letter by typing it over `_`, and make it bold by typing it twice.
    """
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    if "\b" in text:
        text = "\n".join(_typed(line) if "\b" in line else line for line in text.split("\n"))
    return text


def without_codes(sample: bytes) -> bytes:
    """Return the bytes of a text without those that only a terminal reads, which are no sign of binary content."""
    # A sample may begin behind what its backspaces are about.
    return _HIDDEN.sub(b"", sample.lstrip(b"\b")) if b"\b" in sample or b"\x1b" in sample else sample


def _typed(line: str) -> str:
    cells: list[str] = []
    at = 0
    for character in line:
        if character == "\b":
            at = max(0, at - 1)
            continue
        if at == len(cells):
            cells.append(character)
        elif character != "_":
            cells[at] = character
        at += 1
    return "".join(cells)
