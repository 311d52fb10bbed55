"""Parses the bytes of a mail with the standard library, which is given a stranger's mail only so deep and so long.

Its parser recurses for each level, looks for the ends of all levels at each line, and takes quadratic time over
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
"""multiparts and mails in each other"""
MAX_PARTS = 10_000
"""More than any mail or web archive holds."""
MAX_PARAMETERS = 10_000
"""characters of a header about content that are read: a type, a name and other parameters"""
ENCODED_AT_ONCE = 16 * 1024
"""characters of a header in which encoded words are looked for together"""

_BLOCK = 8192


def parse(content: bytes) -> Message:
    """The parts of a mail. No mail is too malformed.

    Raises:
        BrokenDocument: `too-deep` or `too-many-parts`.
    """
    # The older parser policy hardly raises on malformed headers; the newer one does in many ways.
    parser = _Parser(TolerantMessage, policy=_Policy())
    for start in range(0, len(content), _BLOCK):
        parser.feed(content[start : start + _BLOCK])
    return parser.close()


class TolerantMessage(Message):
    """A message of which a header about content may have any parameters."""

    def get_param(self, *arguments: Any, **options: Any) -> Any:
        """See `Message.get_param`; of `name*0*=a; name*`, where one piece of a value has no number, none is read."""
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
    """The pieces of a header, and the charset of those that are encoded words; see `email.header.decode_header`."""
    for start, end in _pieces(text):
        try:
            yield from decode_header(text[start:end])
        except (HeaderParseError, ValueError):
            yield text[start:end], None


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of a header that end with a line, or else with a word, where they can."""
    start = 0
    while len(text) - start > ENCODED_AT_ONCE:
        most = start + ENCODED_AT_ONCE
        end = max(text.rfind("\n", start, most), text.rfind(" ", start, most)) + 1 or most
        yield start, end
        start = end
    yield start, len(text)
