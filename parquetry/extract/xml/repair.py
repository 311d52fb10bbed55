"""Makes well-formed XML of a text that is not, and keeps all of its words.

A parser that recovers by itself, as libxml2 does, ends the document at the first end tag too many.
"""

from __future__ import annotations

import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

WRAPPER = "document"
"""name of the element around the repaired text, which may have several roots"""

_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NAME = r"[^\W\d][\w.-]*+"
_MARK = re.compile(
    rf"(?P<skipped><!--|<\?|<![A-Za-z])|(?P<cdata><!\[CDATA\[)|<(?P<end>/)?(?P<name>{_NAME}(?::{_NAME})?)|"
    r"(?P<reference>&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);)|(?P<sign>[<&]|\]\]>)"
)
_ATTRIBUTE = re.compile(
    rf"\s*+(?P<name>{_NAME}(?::{_NAME})?)(?:\s*+=\s*+(?:\"([^\"<]*)\"|'([^'<]*)'|([^\s\"'<>=`]++)))?"
)
_REST = re.compile(r"[^<>]*+")
_BARE = re.compile(r"&(?!(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);)")
_CLOSING: Final = {"<!--": "-->", "<?": "?>", "<!": ">"}


def repair(text: str) -> str:
    """Return a text as well-formed XML, in an element `document`.

    End tags that end nothing are left out, and missing ones added; signs that are no markup become text; attributes get
    quotes; prefixes of names are dropped, because they may be undeclared; so are comments, processing instructions,
    declarations, and characters that XML forbids.

    Args:
        text: XML whose references are to characters only; see `expand_entities`.
    """
    return _Repair(_ILLEGAL.sub("", text)).run()


class _Repair:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces = [f"<{WRAPPER}>"]
        self._open: list[str] = []
        self._counts: dict[str, int] = {}
        """name of an element -> number of those that are open"""
        self._unclosed: set[str] = set()
        """marks that are not closed in the rest of the text"""

    def run(self) -> str:
        at = 0
        while found := _MARK.search(self._text, at):
            self._pieces.append(self._text[at : found.start()])
            at = found.end()
            if found["skipped"]:
                at = self._skip(found[0], at)
            elif found["cdata"]:
                closed = self._text.find("]]>", at)
                self._pieces.append(escape(self._text[at : closed if closed >= 0 else None]))
                at = closed + 3 if closed >= 0 else len(self._text)
            elif found["name"]:
                at = self._tag(found)
            elif found["reference"]:
                self._pieces.append(_allowed(found[0]))
            else:
                self._pieces.append(escape(found[0]))
        self._pieces.append(self._text[at:])
        self._close(len(self._open))
        return "".join([*self._pieces, f"</{WRAPPER}>"])

    def _skip(self, mark: str, at: int) -> int:
        kind = next(kind for kind in _CLOSING if mark.startswith(kind))
        closed = self._text.find(_CLOSING[kind], at) if kind not in self._unclosed else -1
        if closed >= 0:
            return closed + len(_CLOSING[kind])
        self._unclosed.add(kind)
        self._pieces.append(escape(mark))
        return at

    def _tag(self, found: re.Match[str]) -> int:
        """Write a tag; return the offset after it. A tag without an end is text."""
        name = found["name"].rpartition(":")[2]
        attributes, at = ({}, found.end()) if found["end"] else self._attributes(found.end())
        rest = _REST.match(self._text, at)
        at = rest.end() if rest else at
        if not self._text.startswith(">", at):
            if not found["end"]:
                self._pieces.append("&lt;")
                return found.start() + 1
            at -= 1
        if found["end"]:
            if self._counts.get(name):
                self._close(1 + next(up for up, inner in enumerate(reversed(self._open)) if inner == name))
            return at + 1
        self._pieces.append(f"<{name}{''.join(f' {key}={quoteattr(value)}' for key, value in attributes.items())}>")
        self._open.append(name)
        self._counts[name] = self._counts.get(name, 0) + 1
        if rest and rest[0].rstrip().endswith("/"):
            self._close(1)
        return at + 1

    def _attributes(self, at: int) -> tuple[dict[str, str], int]:
        attributes: dict[str, str] = {}
        while found := _ATTRIBUTE.match(self._text, at):
            at = found.end()
            value = next((value for value in found.groups()[1:] if value is not None), None)
            if value is not None and not found["name"].startswith("xmlns"):
                attributes.setdefault(found["name"].rpartition(":")[2], _plain(value))
        return attributes, at

    def _close(self, count: int) -> None:
        for _ in range(count):
            name = self._open.pop()
            self._counts[name] -= 1
            self._pieces.append(f"</{name}>")


def _plain(value: str) -> str:
    """Return the characters of an attribute's value as written."""
    from html import unescape

    return _ILLEGAL.sub("", unescape(_BARE.sub("&amp;", value)))


def _allowed(reference: str) -> str:
    """Return a reference to a character, if XML allows the character."""
    if not reference.startswith("&#"):
        return reference
    code = int(reference[3:-1], 16) if reference[2] == "x" else int(reference[2:-1])
    return reference if 0 < code < 0x110000 and not _ILLEGAL.match(chr(code)) else ""
