"""Reads pages with PDFium: text, line positions, the outline, and rendered images.

PDFium is not thread-safe, not even across documents: a process uses it from a single thread.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from parquetry.extract.layout import HYPHEN_MARK, Bookmark, Line, join_raised
from parquetry.extract.pdf import bidi, letter_spacing

_LINE = re.compile(f"[^\n{HYPHEN_MARK}]*(?:[\n{HYPHEN_MARK}]|$)")
PASSWORD_ERROR = 4
"""FPDF_ERR_PASSWORD"""
SECURITY_ERROR = 5
"""FPDF_ERR_SECURITY: an encryption that the engine does not support"""
_RENDER_SCALE = 200 / 72
"""pixels per point: 200 dpi reads 8 point type"""
_RENDER_PIXELS = 25_000_000
_OUTLINE_DEPTH = 12
_OUTLINE_ENTRIES = 20_000
_FEW_CHARACTERS = 32
"""characters; a page with less text and a large picture is a scan with a stamp"""
_LARGE_PICTURE = 0.5
"""share of the page area"""


def page_lines(page: Any) -> list[Line]:
    """Return the lines of a page in the engine's reading order, with the pieces of a line joined.

    Words in right-to-left scripts are put in order, and words whose letters are set apart are joined.

    Args:
        page: a `pypdfium2.PdfPage`.

    Returns:
        Lines of text; a line ending in a divided word ends with `HYPHEN_MARK`.
    """
    textpage = page.get_textpage()
    try:
        text = textpage.get_text_range().replace("\x02", HYPHEN_MARK)
        exact = len(text) == textpage.count_chars()
        measure = _measure(textpage.raw, exact=exact)
        rtl = bidi.RIGHT_TO_LEFT.search(text) is not None
        page_is_rtl = rtl and bidi.is_mostly_right_to_left(text)
        spaced = letter_spacing.SPACED.search(text) is not None
        lines: list[Line] = []
        at = 0
        for piece in _LINE.findall(text):
            content = piece.strip()
            if content and content != HYPHEN_MARK:
                first = at + piece.index(content[0])
                last = first + len(content) - (2 if content.endswith(HYPHEN_MARK) else 1)
                line = Line(content, *measure(first, last))
                if rtl and bidi.RIGHT_TO_LEFT.search(content):
                    line = _in_reading_order(line, _glyphs(textpage.raw, content, first, exact=exact), page_is_rtl)
                elif spaced and letter_spacing.SPACED.search(content):
                    line = _without_spacing(line, _glyphs(textpage.raw, content, first, exact=exact))
                lines.append(line)
            at += len(piece)
        return join_raised(lines)
    finally:
        textpage.close()


def _measure(textpage: Any, *, exact: bool) -> Callable[[int, int], tuple[float, float, float, float, float]]:
    """Return a function from a line's first and last index to left, right, bottom, top and type size in points.

    Height and size are those of the first character. Apart from the engine's own work, these calls take most of the
    time for a page, so each line makes as few as possible.

    Args:
        textpage: handle of the page's text.
        exact: True if the text consists of the engine's characters one by one; otherwise indexes are translated.
    """
    from pypdfium2 import raw

    box, matrix = raw.FS_RECTF(), raw.FS_MATRIX()
    box_pointer, matrix_pointer = ctypes.byref(box), ctypes.byref(matrix)
    char_box, char_matrix, font_size = raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetMatrix, raw.FPDFText_GetFontSize
    translated = raw.FPDFText_GetCharIndexFromTextIndex

    def measure(first: int, last: int) -> tuple[float, float, float, float, float]:
        if not exact:
            first, last = max(0, translated(textpage, first)), max(0, translated(textpage, last))
        char_matrix(textpage, first, matrix_pointer)
        turned = _quarter_turns(matrix.a, matrix.b)
        size = font_size(textpage, first) * math.hypot(matrix.c, matrix.d)
        char_box(textpage, first, box_pointer)
        left, bottom, right, top = _upright(turned, box.left, box.bottom, box.right, box.top)
        if last != first:
            char_box(textpage, last, box_pointer)
            right = _upright(turned, box.left, box.bottom, box.right, box.top)[2]
        return left, right, bottom, top, size

    return measure


def _glyphs(textpage: Any, content: str, first: int, *, exact: bool) -> list[tuple[str, float, float]]:
    """Return each character of a line with its left and right in points, on the upright page.

    Args:
        textpage: handle of the page's text.
        content: text of the line.
        first: index of its first character.
        exact: as for `_measure`.
    """
    from pypdfium2 import raw

    box, matrix = raw.FS_RECTF(), raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(textpage, first, ctypes.byref(matrix))
    turned = _quarter_turns(matrix.a, matrix.b)
    glyphs = []
    for place, character in enumerate(content, start=first):
        index = place if exact else max(0, raw.FPDFText_GetCharIndexFromTextIndex(textpage, place))
        raw.FPDFText_GetLooseCharBox(textpage, index, ctypes.byref(box))
        left, _, right, _ = _upright(turned, box.left, box.bottom, box.right, box.top)
        glyphs.append((character, left, right))
    return glyphs


def _in_reading_order(line: Line, characters: list[tuple[str, float, float]], page_is_rtl: bool) -> Line:
    """Return a line that has right-to-left letters with its glyphs in the order in which they are read."""
    glyphs: list[bidi.Glyph] = []
    word = 0
    for character, left, right in characters:
        if character.isspace() or character == HYPHEN_MARK:
            word += 1
            continue
        last = glyphs[-1] if glyphs else None
        if last is not None and (last.left, last.right, last.word) == (left, right, word):
            glyphs[-1] = replace(last, text=last.text + character)
        else:
            glyphs.append(bidi.Glyph(character, left, right, word))
    glyphs = [
        replace(glyph, text=bidi.ligature(glyph.text)) if len(glyph.text) > 1 and glyph.direction == "R" else glyph
        for glyph in glyphs
    ]
    text = bidi.in_reading_order(glyphs, page_is_rtl=page_is_rtl)
    if text is None:
        return line
    mark = HYPHEN_MARK if line.text.endswith(HYPHEN_MARK) else ""
    edges = [edge for glyph in glyphs for edge in (glyph.left, glyph.right)]
    return replace(line, text=text + mark, left=min(edges), right=max(edges))


def _without_spacing(line: Line, characters: list[tuple[str, float, float]]) -> Line:
    def words(run: re.Match[str]) -> str:
        letters = [characters[place] for place in range(*run.span()) if not characters[place][0].isspace()]
        return letter_spacing.joined(letters, line.size) or run[0]

    return replace(line, text=letter_spacing.SPACED.sub(words, line.text))


def _quarter_turns(along: float, across: float) -> int:
    """Return the number of clockwise quarter turns of the page that make text of this direction upright."""
    if abs(along) >= abs(across):
        return 0 if along >= 0 else 2
    return 1 if across > 0 else 3


def _upright(turned: int, left: float, bottom: float, right: float, top: float) -> tuple[float, float, float, float]:
    """Convert a box to the coordinates of the page after a number of clockwise quarter turns."""
    if turned == 1:
        return bottom, -right, top, -left
    if turned == 2:
        return -right, -top, -left, -bottom
    if turned == 3:
        return -top, left, -bottom, right
    return left, bottom, right, top


def lacks_text(page: Any, lines: list[Line]) -> bool:
    """Return True if the page shows content that its text layer lacks."""
    from pypdfium2 import raw

    characters = sum(map(str.isalnum, "".join(line.text for line in lines)))
    if not characters:
        return bool(raw.FPDFPage_CountObjects(page))
    if characters >= _FEW_CHARACTERS:
        return False
    area = page.get_width() * page.get_height()
    return any(
        (right - left) * (top - bottom) > _LARGE_PICTURE * area
        for left, bottom, right, top in (
            picture.get_bounds() for picture in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        )
    )


def render(page: Any) -> Any:
    """Render the page as a Pillow image in RGB, at 200 dpi or less to stay below 25 megapixels."""
    pixels = page.get_width() * page.get_height() * _RENDER_SCALE**2
    scale = _RENDER_SCALE * min(1.0, (_RENDER_PIXELS / max(pixels, 1.0)) ** 0.5)
    return page.render(scale=scale).to_pil().convert("RGB")


def flattened(document: Any, index: int, page: Any) -> Any:
    """Return the page at a 0-based index, with the values of form fields merged into its text."""
    from pypdfium2 import raw

    if raw.FPDFPage_GetAnnotCount(page) and raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
        page.close()
        page = document[index]
    return page


def has_form(document: Any) -> bool:
    from pypdfium2 import raw

    return bool(document.get_formtype() != raw.FORMTYPE_NONE)


def language(document: Any) -> str | None:
    """Return the language that the document declares, such as `en-US`."""
    from pypdfium2 import raw

    size = raw.FPDFCatalog_GetLanguage(document, None, 0)
    if not 2 < size <= 128:
        return None
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFCatalog_GetLanguage(document, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw.decode("utf-16-le", "ignore").strip("\x00 ") or None


def bookmarks(document: Any) -> Iterator[tuple[int, Bookmark]]:
    """Yield the 0-based page and the outline entry that leads to it, in outline order."""
    from pypdfium2 import raw

    for count, entry in enumerate(document.get_toc(max_depth=_OUTLINE_DEPTH)):
        if count >= _OUTLINE_ENTRIES:
            return
        title = entry.get_title().strip()
        destination = entry.get_dest()
        page = destination.get_index() if destination else None
        if not title or page is None:
            continue
        mode, view = destination.get_view()
        top = None
        if mode == raw.PDFDEST_VIEW_XYZ and len(view) > 1:
            top = view[1] or None
        elif mode in {raw.PDFDEST_VIEW_FITH, raw.PDFDEST_VIEW_FITBH} and view:
            top = view[0] or None
        yield page, Bookmark(entry.level + 1, title, top)
