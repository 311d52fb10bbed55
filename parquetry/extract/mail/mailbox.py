"""Mailboxes (mbox): mails that follow each other in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FROM = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]{0,500}\d:\d\d[^\r\n]{1,30}\d{4}[^\r\n]{0,20}\r?\n(?=[!-9;-~]{1,100}:)"
)
"""line between two mails, and a header: `From ada@example.org Thu Feb 29 08:15:30 2024`"""
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def mails_of(content: bytes) -> Iterator[bytes]:
    """Yield the bytes of each mail, in the order of the file."""
    lines = [(found.start(), found.end()) for found in _FROM.finditer(content)]
    for number, (_, start) in enumerate(lines, start=1):
        mail = content[start : lines[number][0] if number < len(lines) else None]
        # A program that stored it has marked lines of its body that look like such a line.
        yield _QUOTED.sub(rb"\1", mail) if b"\n>" in mail else mail
