"""Reads pages with PDFium: text, line positions, the outline, and rendered images.

PDFium is not thread-safe, not even across documents: a process uses it from a single thread.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from parquetry.extract.grid import is_number
from parquetry.extract.layout import HYPHEN_MARK, Bookmark, CellText, Line, join_raised
from parquetry.extract.pdf import bidi, letter_spacing
from parquetry.extract.pdf.lattice import Lattice
from parquetry.extract.pdf.text_page import TextPage

_LINE = re.compile(f"[^\n{HYPHEN_MARK}]*(?:[\n{HYPHEN_MARK}]|$)")
PASSWORD_ERROR = 4
"""FPDF_ERR_PASSWORD"""
SECURITY_ERROR = 5
"""FPDF_ERR_SECURITY: an encryption that the engine does not support"""
_RENDER_SCALE = 200 / 72
"""pixels per point: 200 dpi reads 8 point type"""
_RENDER_PIXELS = 25_000_000
_RULE_PIXELS = 8
"""pixels; at 200 dpi, text of this height is below 3 points"""
_OUTLINE_DEPTH = 12
_OUTLINE_ENTRIES = 20_000
_FEW_CHARACTERS = 32
"""characters; a page with less text and a large picture is a scan with a stamp"""
_LARGE_PICTURE = 0.5
"""share of the page area"""
_MOST_LINES = 2_000
"""lines of a page above which it has no tables"""
_LIST_MARK = re.compile(r"[^\w\s]|\(?\w{1,3}[.)]")
_WORDS_APART = 1.3
"""multiple of the height of a line from which a gap between words is one between columns"""
_NUMBERS_APART = 0.5
"""the same between numbers"""


def page_lines(page: Any, tables: Sequence[Lattice] = ()) -> tuple[list[Line], int]:
    """Return the lines of a page in the engine's reading order, with the pieces of a line joined.

    Words in right-to-left scripts are put in order, and words whose letters are set apart are joined.

    Args:
        page: a `pypdfium2.PdfPage`.
        tables: ruled tables of the page.

    Returns:
        Lines of text, with their pieces in cells of tables, and the number of glyphs without a character as in
        `TextPage.count_unmapped`; a line ending in a divided word ends with `HYPHEN_MARK`.
    """
    page_text = TextPage(page)
    try:
        text = page_text.text.replace("\x02", HYPHEN_MARK)
        rtl = bidi.RIGHT_TO_LEFT.search(text) is not None
        page_is_rtl = rtl and bidi.is_mostly_right_to_left(text)
        spaced = letter_spacing.SPACED.search(text) is not None
        if text.count("\n") > _MOST_LINES:
            tables = ()
        place = page_text.place
        lines: list[Line] = []
        at = 0
        for piece in _LINE.findall(text):
            content = piece.strip()
            if content and content != HYPHEN_MARK:
                first = at + piece.index(content[0])
                last = first + len(content) - (2 if content[-1] == HYPHEN_MARK else 1)
                line = Line(content, *place(first, last))
                if rtl and bidi.RIGHT_TO_LEFT.search(content):
                    line = _in_reading_order(line, page_text.glyphs(content, first), page_is_rtl)
                elif spaced and letter_spacing.SPACED.search(content):
                    line = _without_spacing(line, page_text.glyphs(content, first))
                number = _table_of(line, tables) if tables else None
                if number is not None:
                    line = _in_cells(line, number, tables[number], page_text.glyphs(content, first))
                lines.append(line)
            at += len(piece)
        return join_raised(lines), page_text.count_unmapped()
    finally:
        page_text.close()


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


def _table_of(line: Line, tables: Sequence[Lattice]) -> int | None:
    """Return the number of the first table that a line stands in, at least in part; None for other lines."""
    middle = (line.bottom + line.top) / 2
    for number, table in enumerate(tables):
        if table.holds(middle) and line.left < table.across[-1] and line.right > table.across[0]:
            return number
    return None


def _in_cells(line: Line, number: int, table: Lattice, glyphs: Sequence[tuple[str, float, float]]) -> Line:
    """Return a line with its pieces in the cells of a ruled table.

    Args:
        line: as read.
        number: of the table on the page.
        table: that the line stands in, at least in part.
        glyphs: each character of the line with its left and right in points.
    """
    middle = (line.bottom + line.top) / 2
    words: list[list[tuple[str, float, float]]] = [[]]
    for glyph in glyphs:
        if not glyph[0].isspace():
            words[-1].append(glyph)
        elif words[-1]:
            words.append([])
    pieces: list[CellText] = []
    before = 0.0
    for word in filter(None, words):
        left, right = min(glyph[1] for glyph in word), max(glyph[2] for glyph in word)
        cells = {table.cell_at((glyph[1] + glyph[2]) / 2, middle) for glyph in word}
        cell = cells.pop()
        text = "".join(glyph[0] for glyph in word)
        if (
            cells
            or cell is None
            or (pieces and pieces[-1].cell == cell and _are_apart(pieces[-1], text, left - before))
        ):
            return replace(line, pieces=(CellText(number, -1, line.text, line.left, line.bottom, line.height),))
        if pieces and pieces[-1].cell == cell:
            pieces[-1] = replace(pieces[-1], text=f"{pieces[-1].text} {text}")
        else:
            pieces.append(CellText(number, cell, text, left, line.bottom, line.height))
        before = right
    if len(pieces) == 1:
        pieces[0] = replace(pieces[0], text=line.text)
    return replace(line, pieces=tuple(pieces))


def _are_apart(piece: CellText, word: str, gap: float) -> bool:
    """Return True if a word is likely to stand in another column than the piece before it, with no rule between."""
    last = piece.text.rpartition(" ")[2]
    if _LIST_MARK.fullmatch(last):
        return False
    return gap > (_NUMBERS_APART if is_number(last) and is_number(word) else _WORDS_APART) * piece.height


def _without_spacing(line: Line, characters: list[tuple[str, float, float]]) -> Line:
    def words(run: re.Match[str]) -> str:
        letters = [characters[place] for place in range(*run.span()) if not characters[place][0].isspace()]
        return letter_spacing.joined(letters, line.size) or run[0]

    return replace(line, text=letter_spacing.SPACED.sub(words, line.text))


def lacks_text(page: Any, lines: list[Line]) -> bool:
    """Return True if the page shows content that its text layer lacks."""
    from pypdfium2 import raw

    characters = 0
    for line in lines:
        characters += sum(map(str.isalnum, line.text))
        if characters >= _FEW_CHARACTERS:
            return False
    if not characters:
        return bool(raw.FPDFPage_CountObjects(page))
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


def has_no_text(picture: Any) -> bool:
    """Return True if a rendered page is empty or shows a rule alone: what is on it is too thin for text."""
    from PIL import Image, ImageChops

    paper = Image.new(picture.mode, picture.size, picture.getpixel((0, 0)))
    shown = ImageChops.difference(picture, paper).getbbox()
    return shown is None or min(shown[2] - shown[0], shown[3] - shown[1]) <= _RULE_PIXELS


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
