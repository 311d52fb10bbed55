"""Parses the bytes of an e-mail with the standard library, within limits on depth and size: mail is untrusted.

The standard parser recurses for each level, looks for the ends of all levels at each line, and takes quadratic time for
parameters and encoded words.
"""

from __future__ import annotations

from collections.abc import Iterator
from email.errors import HeaderParseError
from email.feedparser import BytesFeedParser
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from typing import Any

from parquetry.errors import BrokenDocument

MAX_NESTING = 100
"""levels of nested multiparts and mails"""
MAX_PARTS = 10_000
"""parts; more than any mail or web archive has"""
MAX_PARAMETERS = 10_000
"""characters of a content header (type, name, other parameters) that are read"""
ENCODED_AT_ONCE = 16 * 1024
"""characters of a header decoded together when looking for encoded words"""

_BLOCK = 8192


def parse(content: bytes) -> Message:
    """Return the parts of a mail, however malformed.

    Raises:
        BrokenDocument: `too-deep` or `too-many-parts`.
    """
    # The older parser policy hardly raises on malformed headers; the newer one raises in many cases.
    parser = _Parser(TolerantMessage, policy=_Policy())
    for start in range(0, len(content), _BLOCK):
        parser.feed(content[start : start + _BLOCK])
    return parser.close()


class TolerantMessage(Message):
    """A message that accepts any parameters in content headers."""

    def get_param(self, *arguments: Any, **options: Any) -> Any:
        """See `Message.get_param`; return `failobj` for `name*0*=a; name*`, where a piece has no number."""
        try:
            return super().get_param(*arguments, **options)
        except TypeError:
            return options.get("failobj", arguments[1] if len(arguments) > 1 else None)


class _Policy(Compat32):
    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_PARAMETERS] if name.lower().startswith("content-") else value


class _Parser(BytesFeedParser):
    _msgstack: list[Message]
    _parts = 0

    def _new_message(self) -> None:
        self._parts += 1
        if len(self._msgstack) >= MAX_NESTING:
            raise BrokenDocument("too-deep", f"its parts are nested deeper than {MAX_NESTING} levels")
        if self._parts > MAX_PARTS:
            raise BrokenDocument("too-many-parts", f"it has more than {MAX_PARTS} parts")
        super()._new_message()  # type: ignore[misc]


def encoded_words(text: str) -> Iterator[tuple[str | bytes, str | None]]:
    """Return the pieces of a header with the charset of the encoded words; see `email.header.decode_header`."""
    for start, end in _pieces(text):
        try:
            yield from decode_header(text[start:end])
        except (HeaderParseError, ValueError):
            yield text[start:end], None


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Split a header into offset ranges that end with a line, or else with a word, where possible."""
    start = 0
    while len(text) - start > ENCODED_AT_ONCE:
        most = start + ENCODED_AT_ONCE
        end = max(text.rfind("\n", start, most), text.rfind(" ", start, most)) + 1 or most
        yield start, end
        start = end
    yield start, len(text)
