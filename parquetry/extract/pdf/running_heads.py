"""Removes running heads, feet and page numbers: the lines that pages repeat at their edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from parquetry.extract.layout import Line, body_size, usual_pitch
from parquetry.extract.page_numbers import PageNumber, numbers_beside_text, page_number

_DEPTH = 6
"""rows inspected at an edge; a page on which this many are repeated is a copy of another page"""
_LEAST_PAGES = 3
_SHORT_DOCUMENT = 3
"""pages; up to this length, a line on all pages but one is repeated"""
_DENSITY = 0.3
"""minimum share of the pages between a head's first and last page that have it: left and right heads alternate"""
_MOST_PAGES = 0.5
"""share of all pages from which a repeated line may be at any height: in pages made from HTML, the foot follows the
text"""
_LEAST_ANY_HEIGHT = 5
"""the same as a minimum number of pages"""
_NEARLY_ALL_PAGES = 0.8
"""share of all pages from which a repeated line may be in larger type; with fewer, larger type makes it a heading"""
_LARGER = 1.15
"""multiple of the body text size above which type is larger"""
_HEIGHT_TOLERANCE = 3.0
"""points between the positions of one head on two pages"""
_GAP = 0.8
"""minimum distance of a head from the text, in line heights; column names are closer to the rows of their table"""
_PITCH = 1.25
"""the same in multiples of the page's usual line pitch, since rows of a table may be far apart"""
_REACH = 6
"""maximum number of pages between two numbers of one sequence"""
_LABEL_WORDS = 2
"""words; `Exercise 3` on top of a page is as likely a title as a head"""
_OFFSET = 100
"""difference between a printed number and the page's position above which it may be a title: `Invoice 1001`"""
_YEARS = range(1900, 2100)
_FIRST_CHARACTERS = 5_000
"""characters of the first page in which the text of a head is searched"""
_MOST_IN_ROW = 3
"""lines of a row: left, middle and right"""

Side = Literal["top", "bottom"]


@dataclass(frozen=True, slots=True)
class _Place:
    """A line in one of the rows at an edge of a page."""

    page: int
    """page number, 0-based"""
    index: int
    """index of the line on the page, 0-based"""
    line: Line


def without_running_heads(pages: Sequence[Sequence[Line]], titles: Iterable[str] = ()) -> list[list[Line]]:
    """Remove repeated lines at the edges of pages, and page numbers.

    The text of a head is kept once, on the first page that has it, unless the first page's text or a title contains
    it: it may be the only mention of a document's number or version. Rows are removed from the edge inwards, so that
    the text itself is never affected.

    Args:
        pages: lines of each page, from the first.
        titles: known titles of the document and its sections.
    """
    leaving: list[dict[int, str | None]] = [{} for _ in pages]
    body = body_size(pages)
    for side in ("top", "bottom"):
        rows = [_edge_rows(lines, side) for lines in pages]
        running = _running([_places(p, lines, rows[p]) for p, lines in enumerate(pages)], len(pages), body, side)
        apart = _apart(pages, rows, running)
        for p, lines in enumerate(pages):
            for index in _peeled(lines, rows[p], running[p], apart):
                leaving[p][index] = running[p][index]
    return _left_over(pages, leaving, titles)


def _left_over(
    pages: Sequence[Sequence[Line]], leaving: Sequence[dict[int, str | None]], titles: Iterable[str]
) -> list[list[Line]]:
    staying = [
        [line for i, line in enumerate(lines) if i not in gone] for lines, gone in zip(pages, leaving, strict=True)
    ]
    if not any(staying):
        return [list(lines) for lines in pages]
    first_page = _key(" ".join(line.text for line in staying[0])[:_FIRST_CHARACTERS])
    known = set(map(_key, titles))
    kept: set[str] = set()
    result = []
    for lines, gone in zip(pages, leaving, strict=True):
        page = []
        for i, line in enumerate(lines):
            if i not in gone:
                page.append(line)
            elif (text := gone[i]) and (key := _key(text)) not in kept:
                kept.add(key)
                if key not in known and key not in first_page:
                    page.append(replace(line, text=text))
        result.append(page)
    return result


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _edge_rows(lines: Sequence[Line], side: Side) -> list[list[int]]:
    """Return the line indexes of the rows nearest to an edge, from the edge inwards, plus one more row."""
    # Lines without a known position keep their order.
    order = sorted(range(len(lines)), key=lambda i: (-lines[i].top, i) if side == "top" else (lines[i].bottom, -i))
    rows: list[list[int]] = []
    for i in order:
        if rows:
            first = lines[rows[-1][0]]
            shared = min(first.top, lines[i].top) - max(first.bottom, lines[i].bottom)
            if shared > 0.5 * min(first.height, lines[i].height):
                rows[-1].append(i)
                continue
        if len(rows) > _DEPTH:
            break
        rows.append([i])
    return rows


def _places(page: int, lines: Sequence[Line], rows: Sequence[Sequence[int]]) -> list[_Place]:
    return [_Place(page, i, lines[i]) for row in rows[:_DEPTH] if len(row) <= _MOST_IN_ROW for i in row]


def _running(places: Sequence[Sequence[_Place]], count: int, body: float, side: Side) -> list[dict[int, str | None]]:
    """For each page, map the index of a line that runs through the document to its text without the page number."""
    running: list[dict[int, str | None]] = [{} for _ in places]
    texts: dict[str, list[_Place]] = defaultdict(list)
    numbers: dict[tuple[str, str], list[tuple[_Place, PageNumber]]] = defaultdict(list)
    for place in (place for page in places for place in page):
        texts[_key(place.line.text)].append(place)
        for number in _numbers(place, count, side):
            numbers[number.style, _key(number.beside)].append((place, number))
    for repeated in texts.values():
        if len(repeated) == 1:
            # Most lines: never a running head.
            continue
        for place in _repeated(_small(repeated, count, body), count):
            running[place.page][place.index] = place.line.text
    for numbered in numbers.values():
        if len(numbered) == 1 and count > 1:
            continue
        small = set(_small([place for place, _ in numbered], count, body))
        for place, number in _sequence([found for found in numbered if found[0] in small], count):
            running[place.page][place.index] = number.beside or None
    return running


def _numbers(place: _Place, count: int, side: Side) -> Iterable[PageNumber]:
    number = page_number(place.line.text)
    if number is not None:
        if number.is_explicit or number.value not in _YEARS or count > _OFFSET:
            yield number
        return
    for number in numbers_beside_text(place.line.text):
        label = side == "top" and not number.is_first and len(number.beside.split()) <= _LABEL_WORDS
        if number.is_explicit or not (label or abs(number.value - place.page - 1) > _OFFSET):
            yield number


def _repeated(places: Sequence[_Place], count: int) -> list[_Place]:
    """Return the occurrences of one text that form a running head; empty if they do not."""
    if not places:
        return []
    if len({place.page for place in places}) >= max(_LEAST_ANY_HEIGHT, _MOST_PAGES * count):
        return list(places)
    heights: dict[int, list[_Place]] = defaultdict(list)
    for place in places:
        heights[round(place.line.bottom / _HEIGHT_TOLERANCE)].append(place)
    most = max(heights, key=lambda height: len(heights[height]))
    level = [place for height in (most - 1, most, most + 1) for place in heights.get(height, ())]
    return level if _is_regular(level, count) else []


def _is_regular(places: Sequence[_Place], count: int) -> bool:
    pages = {place.page for place in places}
    if count <= _SHORT_DOCUMENT:
        return len(pages) >= max(2, count - 1)
    return len(pages) >= max(_LEAST_PAGES, _DENSITY * (max(pages) - min(pages) + 1))


def _sequence(numbered: Sequence[tuple[_Place, PageNumber]], count: int) -> list[tuple[_Place, PageNumber]]:
    """Return the numbers that count the pages: their steps are at most those of the pages."""
    if count == 1:
        return [(place, number) for place, number in numbered if number.is_explicit and number.value == 1]
    chains: list[list[tuple[_Place, PageNumber]]] = []
    for place, number in numbered:
        for chain in reversed(chains[-2 * _REACH :]):
            last, before = chain[-1]
            if 0 < number.value - before.value <= place.page - last.page <= _REACH:
                chain.append((place, number))
                break
        else:
            chains.append([(place, number)])
    least = 2 if count <= _SHORT_DOCUMENT else _LEAST_PAGES
    return [found for chain in chains if len(chain) >= least for found in chain]


def _small(places: Sequence[_Place], count: int, body: float) -> list[_Place]:
    """Return the occurrences in type no larger than the text; all of them if they are on nearly every page."""
    if len({place.page for place in places}) >= max(_LEAST_PAGES, _NEARLY_ALL_PAGES * count):
        return list(places)
    return [place for place in places if place.line.size <= _LARGER * body]


def _apart(
    pages: Sequence[Sequence[Line]], rows: Sequence[Sequence[Sequence[int]]], running: Sequence[Collection[int]]
) -> frozenset[str]:
    """Return the keys of the running rows that are set apart from the text on most of their pages."""
    votes: dict[str, int] = defaultdict(int)
    for lines, edge, found in zip(pages, rows, running, strict=True):
        deepest = _depth(edge, found)
        pitch = _pitch_of_text(lines, found) if deepest else 0.0
        for depth in range(1, deepest + 1):
            is_apart = deepest < len(edge) and _is_apart(lines, edge, depth, pitch)
            votes[_row_key(lines, edge[depth - 1])] += 1 if is_apart else -1
    return frozenset(key for key, balance in votes.items() if balance >= 0)


def _depth(rows: Sequence[Sequence[int]], running: Collection[int]) -> int:
    """Return the number of rows, from the edge inwards, that consist of running lines only."""
    return next((depth for depth, row in enumerate(rows) if any(i not in running for i in row)), len(rows))


def _row_key(lines: Sequence[Line], row: Sequence[int]) -> str:
    """Return the words of a row, the same on every page; empty for a row with only the page number."""
    beside = (next((n.beside for n in numbers_beside_text(lines[i].text)), lines[i].text) for i in row)
    return " ".join(_key(text) for text in beside if page_number(text) is None)


def _peeled(
    lines: Sequence[Line], rows: Sequence[Sequence[int]], running: Collection[int], apart: Collection[str]
) -> list[int]:
    """Return the indexes of the lines to remove at an edge of a page."""
    depth = _depth(rows, running)
    keys = [_row_key(lines, row) for row in rows[:depth]]
    if depth >= _DEPTH or (depth == len(rows) and any(key and key not in apart for key in keys)):
        # A copy of another page: only numbers are distinguishable from its text.
        depth = next((d for d, key in enumerate(keys) if key), depth)
    while depth and keys[depth - 1] and keys[depth - 1] not in apart:
        depth -= 1
    peeled = [i for row in rows[:depth] for i in row]
    beside = rows[depth] if depth < len(rows) and len(rows[depth]) <= _MOST_IN_ROW else ()
    found = [i for i in beside if i in running]
    if 0 < len(found) < len(beside) and _is_apart(lines, rows, depth + 1, _pitch_of_text(lines, running)):
        # The name of a section, which changes, is in the same row.
        peeled += found
    return peeled


def _pitch_of_text(lines: Sequence[Line], running: Collection[int]) -> float:
    return usual_pitch([line for i, line in enumerate(lines) if i not in running])


def _is_apart(lines: Sequence[Line], rows: Sequence[Sequence[int]], depth: int, pitch: float) -> bool:
    """Return True if the gap after the outer rows, at a depth, is wider than the line pitch of the text explains."""
    if depth >= len(rows):
        return False
    outer, inner = [lines[i] for i in rows[depth - 1]], [lines[i] for i in rows[depth]]
    upper, lower = (outer, inner) if outer[0].top > inner[0].top else (inner, outer)
    gap = min(line.bottom for line in upper) - max(line.top for line in lower)
    step = min(line.bottom for line in upper) - min(line.bottom for line in lower)
    return 0 < gap >= _GAP * outer[0].height and step >= _PITCH * pitch
