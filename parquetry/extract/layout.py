"""Groups the positioned lines of PDF pages into paragraphs and headings. Pure: does not use a PDF library."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low

from parquetry.extract.titles import names_contents

HYPHEN_MARK = "\ufffe"
"""mark in the text where a word was divided at the end of a line"""

_DIVIDED = re.compile(r"(-?)(?<!\w)(\w*+)\ufffe(\w*+)(-?)")
_WORD = re.compile(r"\w+(?:-\w+)*")
_NOT_WORD = re.compile(r"[\W_]+")
_NUMBERING = re.compile(r"(?:chapter|section|part|appendix|kapitel|chapitre|[ivxlc]*)\d*[a-z]?")
_SENTENCE_END = (".", "!", "?", ":", ";", "。", "！", "？", "”", '"', ")")

_ROW_GAP = 12
"""heights of a line up to which level pieces are cells of one row; parts of a running head are further apart"""
_LEVEL = 0.5
"""points by which level pieces differ in height at most"""
_LEVEL_SIZE = 0.05
"""the same for their type size, relatively"""
_PARAGRAPH_GAP = 1.35
"""multiple of the usual line pitch from which a gap separates paragraphs"""
_SIZE_STEP = 0.12
"""relative difference above which two heights are different type sizes"""
_HEADING_SIZE = 1.15
"""multiple of the body text size from which a line may be a heading"""
_NUMBERED_SIZE = 1.05
"""the same for a line that starts with a section number"""
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,4}|[A-Z]|[IVX]{1,5})\.? +[^\W\d_]")
_HEADING_CHARACTERS = 200
_HEADING_SHARE = 0.2
"""share of all lines above which larger type is a design, not headings"""
_HEADING_LEVELS = 4
_LINES_TO_COMPARE = 5
_TITLE_SIZE = 1.3
"""multiple of the body text size from which a line may be the title"""
_TITLE_LINES = 4
_COMPARED = 1_000_000
"""lines of a page compared in total for all its bookmarks"""


@dataclass(frozen=True, slots=True)
class CellText:
    """Part of a line that stands in one cell of a ruled table."""

    table: int
    """0-based number of the table on the page"""
    cell: int
    """number of the cell in the table; -1 if the text crosses the edge of a cell"""
    text: str
    left: float
    """in points, like those of lines"""
    bottom: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; coordinates in points from the lower left of the upright page."""

    text: str
    """text of the line, with `HYPHEN_MARK` at the end if the last word continues in the next line"""
    left: float
    right: float
    bottom: float
    top: float
    size: float
    """size of the type, in points"""
    pieces: tuple[CellText, ...] = ()
    """its parts in cells of ruled tables, from left to right"""
    block: int | None = None
    """0-based number of the Markdown table on the page of which this line is a row; None for text"""

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(frozen=True, slots=True)
class Bookmark:
    """One entry of a document's outline."""

    level: int
    """1 for the outermost level"""
    title: str
    top: float | None
    """height of its target on the page, in points; None if not given"""


def join_raised(lines: Sequence[Line]) -> list[Line]:
    """Rejoin pieces split off a line because they are higher, lower or smaller.

    The engine returns footnote marks and exponents as lines of their own and cuts the surrounding line in two.
    """
    joined: list[Line] = []
    pieces: list[list[str]] = []
    for line in lines:
        # Until all its pieces are known, the last line has only its last piece as text.
        last = joined[-1] if joined else None
        if last is None or line.top <= last.bottom or not _same_line(last, line):
            joined.append(line)
            pieces.append([line.text])
            continue
        gap = line.left - last.right
        space = " " if gap > 0.2 * max(last.height, line.height) and not last.text.endswith(" ") else ""
        larger = last if last.height >= line.height else line
        pieces[-1] += [space, line.text]
        both = last.pieces + line.pieces
        joined[-1] = Line(line.text, last.left, line.right, larger.bottom, larger.top, larger.size, both)
    return [
        replace(line, text="".join(texts)) if len(texts) > 1 else line
        for line, texts in zip(joined, pieces, strict=True)
    ]


def _same_line(last: Line, line: Line) -> bool:
    shared = min(last.top, line.top) - max(last.bottom, line.bottom)
    if shared <= 0 or last.text.endswith(HYPHEN_MARK):
        return False
    height = max(last.height, line.height)
    if 0 < line.left - last.right < _ROW_GAP * height and _is_level(last, line):
        # Cells of a row, which the engine takes apart where a gap is wide.
        return True
    # Pieces at exactly the same height may have a sign without text between them; raised pieces follow closely.
    reach = 2 * height if shared > 0.9 * height else height
    return shared > 0.4 * min(last.height, line.height) > 0 and -0.5 * height < line.left - last.right < reach


def _is_level(last: Line, line: Line) -> bool:
    return abs(last.bottom - line.bottom) < _LEVEL and abs(last.size - line.size) < _LEVEL_SIZE * line.size


def paragraphs(lines: Sequence[Line]) -> str:
    """Return the lines as text, with a line feed between lines and a blank line between paragraphs."""
    if not lines:
        return ""
    pitch = usual_pitch(lines)
    pieces = [lines[0].text]
    for i in range(1, len(lines)):
        following = lines[i + 1] if i + 1 < len(lines) else None
        if not lines[i - 1].text.endswith(HYPHEN_MARK):
            pieces.append("\n\n" if _breaks(lines[i - 1], lines[i], following, pitch) else "\n")
        pieces.append(lines[i].text)
    return "".join(pieces)


def starts_of_lines(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that start a line of `paragraphs(lines)`: all but those that finish a divided word."""
    return [line for i, line in enumerate(lines) if i == 0 or not lines[i - 1].text.endswith(HYPHEN_MARK)]


def usual_pitch(lines: Sequence[Line]) -> float:
    pitches = [
        above.bottom - below.bottom
        for above, below in pairwise(lines)
        if 0 < above.bottom - below.bottom < 4 * above.height
    ]
    return median_low(pitches) if pitches else 0.0


def _breaks(last: Line, line: Line, following: Line | None, pitch: float) -> bool:
    if last.block is not None or line.block is not None:
        return last.block != line.block
    step = last.bottom - line.bottom
    if abs(last.size - line.size) > _SIZE_STEP * max(last.size, line.size):
        return True
    if step <= 0 or line.left > last.right or line.right < last.left:
        # Another column or cell, in which the sentence may continue.
        first = line.text[:1]
        return last.text.rstrip().endswith(_SENTENCE_END) or first.isupper() or not first.isalpha()
    if step > _PARAGRAPH_GAP * max(pitch, 0.9 * last.height):
        return True
    indent = line.left - last.left
    height = line.height
    return (
        0.8 * height < indent < 4 * height
        and following is not None
        and abs(following.left - last.left) < 0.3 * height
        and 0 < line.bottom - following.bottom < _PARAGRAPH_GAP * pitch
    )


def words_of(pages: Iterable[str]) -> frozenset[str]:
    """Return every whole word of a document in lower case, as the dictionary for divided words."""
    words: set[str] = set()
    for page in pages:
        words.update(_WORD.findall(_with_divided(page.lower(), lambda _: " ")))
    return frozenset(words)


def _with_divided(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    """Return a text with every divided word replaced: `_DIVIDED.sub`, tried at the marks and not at every character."""
    pieces: list[str] = []
    done = 0
    mark = text.find(HYPHEN_MARK)
    while mark >= 0:
        start = mark
        while start > done and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        start -= start > done and text[start - 1] == "-"
        if found := _DIVIDED.match(text, start):
            pieces += (text[done:start], replacement(found))
            done = found.end()
        mark = text.find(HYPHEN_MARK, mark + 1)
    return "".join([*pieces, text[done:]]) if pieces else text


def join_divided(text: str, words: frozenset[str]) -> str:
    """Join words divided at line ends, keeping the hyphens that belong to the word.

    The document itself is the dictionary: a word that occurs elsewhere in one form gets that form. Otherwise a hyphen
    stays before a capital or a digit, inside a longer compound, and between two long words that occur on their own.
    """

    def join(match: re.Match[str]) -> str:
        before, left, right, after = match.groups()
        hyphen = "-" if before or after or _keeps_hyphen(left.lower(), right, words) else ""
        return f"{before}{left}{hyphen}{right}{after}"

    return _with_divided(text, join)


def _keeps_hyphen(left: str, right: str, words: frozenset[str]) -> bool:
    if not left or not right or not right[0].islower() or left[-1].isdigit():
        return True
    right = right.lower()
    if f"{left}{right}" in words:
        return False
    return f"{left}-{right}" in words or (len(left) > 3 and len(right) > 3 and left in words and right in words)


def place_bookmarks(text: str, lines: Sequence[Line], bookmarks: Sequence[Bookmark]) -> list[tuple[int, Bookmark]]:
    """Locate the heading of each bookmark on its page.

    Args:
        text: the page's normalised text.
        lines: `starts_of_lines` of the page; used only if each is one non-blank line of `text`.
        bookmarks: bookmarks that lead to this page, in outline order.

    Returns:
        0-based offset of a line in `text`, and the bookmark, sorted by offset. A bookmark without a matching
        line is placed by its height, else at the start.
    """
    if not bookmarks:
        return []
    starts, plain = _line_starts(text)
    by_last = _lines_by_last_character(plain)
    placed = []
    floor = compared = 0
    for bookmark in bookmarks:
        wanted = _NOT_WORD.sub("", bookmark.title.casefold())
        candidates = by_last.get(wanted[-1:], []) if compared < _COMPARED else []
        compared += len(candidates)
        found = [i for i in candidates if _is_heading_line(plain, i, wanted)]
        below = _line_at(lines, bookmark.top) if len(lines) == len(starts) else None
        if found and below is not None:
            at = min(found, key=lambda i: abs(i - below))
        elif found:
            at = next((i for i in found if i >= floor), found[0])
        else:
            at = below or 0
        floor = at
        placed.append((starts[at] if starts else 0, bookmark))
    return sorted(placed, key=lambda pair: pair[0])


def _line_starts(text: str) -> tuple[list[int], list[str]]:
    starts, plain = [], []
    at = 0
    for line in text.split("\n"):
        if line.strip():
            starts.append(at)
            plain.append(_NOT_WORD.sub("", line.casefold()))
        at += len(line) + 1
    return starts, plain


def _lines_by_last_character(plain: Sequence[str]) -> dict[str, list[int]]:
    """Index lines by their last character, alone or joined with the next line, to compare few with a heading."""
    found: dict[str, list[int]] = {}
    for i, line in enumerate(plain):
        if line:
            following = plain[i + 1] if i + 1 < len(plain) else ""
            for last in {line[-1], (following or line)[-1]}:
                found.setdefault(last, []).append(i)
    return found


def _is_heading_line(plain: Sequence[str], i: int, wanted: str) -> bool:
    line = plain[i]
    for text in (line, line + plain[i + 1] if i + 1 < len(plain) else line):
        if text.endswith(wanted) and _NUMBERING.fullmatch(text.removesuffix(wanted)):
            return True
        if wanted.endswith(text) and len(text) > 3 and _NUMBERING.fullmatch(wanted.removesuffix(text)):
            return True
    return False


def _line_at(lines: Sequence[Line], top: float | None) -> int | None:
    """Return the index of the first line that is not wholly above a height."""
    if top is None:
        return None
    return next((i for i, line in enumerate(lines) if line.bottom < top and line.top < top + 2 * line.height), None)


def large_lines(pages: Sequence[Sequence[Line]]) -> list[list[tuple[int, int, str]]]:
    """Find the headings of a document without an outline by their type size.

    Returns:
        For each page, tuples of (0-based line on the page, level, title), in order; empty if sizes are inconclusive.
    """
    body = body_size(pages)
    nothing: list[list[tuple[int, int, str]]] = [[] for _ in pages]
    total = sum(map(len, pages))
    if not body or total < _LINES_TO_COMPARE:
        return nothing
    runs = [
        (p, first, round(page[first].size / body, 1), _run_text(page[first:end]))
        for p, page in enumerate(pages)
        for first, end in _runs(page)
        if page[first].block is None
        and end - first <= _TITLE_LINES
        and page[first].size > body * _least_size(page[first].text)
    ]
    runs = [run for run in runs if _reads_like_heading(run[3])]
    if len(runs) > _HEADING_SHARE * total:
        return nothing
    sizes = sorted({size for _, _, size, _ in runs}, reverse=True)
    for p, first, size, title in runs:
        nothing[p].append((first, min(sizes.index(size) + 1, _HEADING_LEVELS), title))
    return nothing


def _least_size(text: str) -> float:
    return _NUMBERED_SIZE if _NUMBERED.match(text) else _HEADING_SIZE


def first_title(page: Sequence[Line], body: float) -> str | None:
    """Return the title on the first page: its largest type, if only a few lines and clearly larger than the text.

    Args:
        page: lines of the first page.
        body: type size of most of the document's text, in points.
    """
    runs = [(page[first].size, _run_text(page[first:end])) for first, end in _runs(page) if end - first <= _TITLE_LINES]
    runs = [run for run in runs if _reads_like_heading(run[1]) and not _NUMBERED.match(run[1])]
    runs = [run for run in runs if not names_contents(run[1])]
    size, title = max(runs, key=lambda run: run[0], default=(0.0, ""))
    return title if body and size >= _TITLE_SIZE * body else None


def _runs(page: Sequence[Line]) -> list[tuple[int, int]]:
    """Return the index of the first line, and one past the last, of each run of consecutive lines in one type size."""
    runs: list[tuple[int, int]] = []
    for i, line in enumerate(page):
        last = page[i - 1] if i else None
        if last and abs(last.size - line.size) < 0.02 * line.size and 0 < last.bottom - line.bottom < 2.2 * line.size:
            runs[-1] = (runs[-1][0], i + 1)
        else:
            runs.append((i, i + 1))
    return runs


def _run_text(lines: Sequence[Line]) -> str:
    return " ".join(line.text for line in lines).replace(f"{HYPHEN_MARK} ", "").strip()


def body_size(pages: Sequence[Sequence[Line]]) -> float:
    """Return the type size of most characters, in points; 0 without any."""
    exactly: defaultdict[float, int] = defaultdict(int)
    for page in pages:
        for line in page:
            exactly[line.size] += len(line.text)
    characters: Counter[float] = Counter()
    for size, count in exactly.items():
        characters[round(size, 1)] += count
    return characters.most_common(1)[0][0] if characters else 0.0


def _reads_like_heading(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    usual = 3 <= len(text) <= _HEADING_CHARACTERS and letters * 2 >= len(text)
    return usual and "@" not in text and "://" not in text and not text.endswith((".", ",", ";"))
