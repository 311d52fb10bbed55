"""The text of one page as PDFium has it: characters, and where and how large each is drawn.

Apart from the engine's own work, these calls take most of the time for a page. So they go without pypdfium2's objects,
and each line makes as few as possible.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from itertools import repeat
from math import hypot
from struct import Struct
from typing import Any

from parquetry.extract.pdf.direct import ADDRESS, HANDLE, direct, handle

_SAMPLE = 64
"""glyphs of a page that are asked for their character"""
_MATRIX_AND_BOX = Struct("=10f")
"""FS_MATRIX and FS_RECTF"""
_BOX = Struct("=4f")
_BOX_AT = 24
"""bytes before the box"""

Place = tuple[float, float, float, float, float]
"""left, right, bottom, top and type size in points"""


class TextPage:
    """The text of a page; to be closed before the page.

    Args:
        page: a `pypdfium2.PdfPage`.

    Raises:
        PdfiumError: the engine cannot read it.
    """

    def __init__(self, page: Any) -> None:
        from pypdfium2 import PdfiumError

        self._calls = _calls()
        self._handle = self._calls.load(handle(page.raw))
        if not self._handle:
            raise PdfiumError("Failed to load text page.")
        self._count: int = self._calls.count(self._handle)
        self.text = self._read()
        self._exact = len(self.text) == self._count
        """True if the text consists of the engine's characters one by one; otherwise indexes are translated"""
        # In memory like FS_MATRIX and FS_RECTF: all numbers are read at once.
        self._numbers = ctypes.create_string_buffer(_MATRIX_AND_BOX.size)
        self._matrix_at = ctypes.addressof(self._numbers)

    def close(self) -> None:
        self._calls.close(self._handle)

    def _read(self) -> str:
        """Return all of the text, as pypdfium2's `get_text_range` does."""
        text_index, text = self._calls.text_index, self._handle
        first, last = 0, self._count - 1
        # The engine would write past the buffer if characters at the ends are not in its text.
        while first <= last and (start := text_index(text, first)) == -1:
            first += 1
        while first <= last and (end := text_index(text, last)) == -1:
            last -= 1
        if first > last:
            return ""
        # One more for the NUL at the end.
        size = end + 2 - start
        buffer = ctypes.create_string_buffer(2 * size)
        written = self._calls.text(text, first, last - first + 1, ctypes.addressof(buffer))
        if written > size:
            raise ValueError(f"the engine has {written} units of text, not {size}")
        return buffer.raw[: 2 * (written - 1)].decode("utf-16-le", "ignore")

    def count_unmapped(self) -> int:
        """Count the glyphs for which the fonts name no character: the engine returns their codes as if they did.

        Asking for every glyph would double the engine's time, so a page on which none of a sample lacks its character
        counts as having none: one with 1 in 20 is counted 24 times in 25.
        """
        lacks, text, count = self._calls.lacks_character, repeat(self._handle), self._count
        if 1 not in map(lacks, text, range(0, count, max(1, count // _SAMPLE))):
            return 0
        return sum(found == 1 for found in map(lacks, text, range(count)))

    def place(self, first: int, last: int) -> Place:
        """Return where a line is drawn; height and size are those of its first character.

        Args:
            first: index of its first character in the text.
            last: index of its last character.
        """
        calls, text, numbers, matrix_at = self._calls, self._handle, self._numbers, self._matrix_at
        if not self._exact:
            first, last = self._translated(first), self._translated(last)
        calls.matrix(text, first, matrix_at)
        calls.box(text, first, matrix_at + _BOX_AT)
        a, b, c, d, _, _, left, top, right, bottom = _MATRIX_AND_BOX.unpack(numbers)
        size = calls.font_size(text, first) * hypot(c, d)
        turned = quarter_turns(a, b) if b or not a >= 0 else 0
        if turned:
            left, bottom, right, top = upright(turned, left, bottom, right, top)
        if last != first:
            calls.box(text, last, matrix_at + _BOX_AT)
            ends = _BOX.unpack_from(numbers, _BOX_AT)
            right = upright(turned, ends[0], ends[3], ends[2], ends[1])[2] if turned else ends[2]
        return left, right, bottom, top, size

    def glyphs(self, content: str, first: int) -> list[tuple[str, float, float]]:
        """Return each character of a line with its left and right in points, on the upright page.

        Args:
            content: text of the line.
            first: index of its first character in the text.
        """
        calls, text = self._calls, self._handle
        numbers = ctypes.create_string_buffer(_MATRIX_AND_BOX.size)
        matrix_at = ctypes.addressof(numbers)
        calls.matrix(text, first, matrix_at)
        turned = quarter_turns(*_MATRIX_AND_BOX.unpack(numbers)[:2])
        glyphs = []
        for place, character in enumerate(content, start=first):
            index = place if self._exact else self._translated(place)
            calls.box(text, index, matrix_at + _BOX_AT)
            left, top, right, bottom = _BOX.unpack_from(numbers, _BOX_AT)
            if turned:
                left, _, right, _ = upright(turned, left, bottom, right, top)
            glyphs.append((character, left, right))
        return glyphs

    def _translated(self, index: int) -> int:
        found: int = self._calls.character_index(self._handle, index)
        return max(0, found)


def quarter_turns(along: float, across: float) -> int:
    """Return the number of clockwise quarter turns of the page that make text of this direction upright."""
    if abs(along) >= abs(across):
        return 0 if along >= 0 else 2
    return 1 if across > 0 else 3


def upright(turned: int, left: float, bottom: float, right: float, top: float) -> tuple[float, float, float, float]:
    """Convert a box to the coordinates of the page after a number of clockwise quarter turns."""
    if turned == 1:
        return bottom, -right, top, -left
    if turned == 2:
        return -right, -top, -left, -bottom
    if turned == 3:
        return -top, left, -bottom, right
    return left, bottom, right, top


class _Calls:
    """The functions of PDFium that read text; named after what they return."""

    def __init__(self) -> None:
        from pypdfium2 import raw

        number = ctypes.c_int
        self.load = direct(raw.FPDFText_LoadPage, HANDLE, HANDLE)
        self.close = direct(raw.FPDFText_ClosePage, None, HANDLE)
        self.count = direct(raw.FPDFText_CountChars, number, HANDLE)
        self.text = direct(raw.FPDFText_GetText, number, HANDLE, number, number, ADDRESS)
        self.box = direct(raw.FPDFText_GetLooseCharBox, number, HANDLE, number, ADDRESS)
        self.matrix = direct(raw.FPDFText_GetMatrix, number, HANDLE, number, ADDRESS)
        self.font_size = direct(raw.FPDFText_GetFontSize, ctypes.c_double, HANDLE, number)
        self.character_index = direct(raw.FPDFText_GetCharIndexFromTextIndex, number, HANDLE, number)
        self.text_index = direct(raw.FPDFText_GetTextIndexFromCharIndex, number, HANDLE, number)
        self.lacks_character = direct(raw.FPDFText_HasUnicodeMapError, number, HANDLE, number)


_calls: Callable[[], _Calls] = cache(_Calls)
