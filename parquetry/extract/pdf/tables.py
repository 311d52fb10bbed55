"""Turns the lines of ruled tables into rows of Markdown tables, where the rows are certain. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parquetry.extract.builder import table_blocks
from parquetry.extract.grid import is_number, with_names
from parquetry.extract.layout import HYPHEN_MARK, CellText, Line
from parquetry.extract.pdf.lattice import Lattice
from parquetry.extract.spreading import Spreading

_MOST_IN_CELL = 600
"""characters of a cell above which rules frame parts of a page, not cells"""
_LEAST_FILLED = 0.3
"""share of the cells that have text, below which rules are a drawing or an empty form"""
_LEAST_CELLS = 0.5
"""cells per place of the grid, below which the cells are too different to be a table"""
_MOST_LINES = 3
"""lines of a row above which columns of equally many lines are rows without rules, not wrapped text"""
_ON_LINE = 0.5
"""share of the height of a piece by which those of one line differ at most"""

_SAME_EDGE = 3.0
"""points by which an edge of a column may differ from page to page"""

Rows = list[list[str]]
BLOCKS = 1000
"""numbers of blocks that belong to one table of a page"""


@dataclass(frozen=True, slots=True)
class _Shape:
    """Places of the cells of one table."""

    height: int
    width: int
    extents: dict[int, tuple[int, int, int, int]]
    """number of a cell -> its first row and column, and one past its last"""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the columns of a table, which apply to its rows on the next page, too."""

    across: tuple[float, ...]
    """edges of the columns from left to right, in points"""
    cells: tuple[str, ...]

    def continue_in(self, lattice: Lattice) -> bool:
        """Return True if a table at the top of the next page has the same columns."""
        edges = lattice.across
        return len(edges) == len(self.across) and all(
            abs(edge - other) <= _SAME_EDGE for edge, other in zip(edges, self.across, strict=True)
        )


def with_tables(
    lines: Sequence[Line],
    before: Sequence[Line],
    found: Sequence[Lattice],
    spreading: Spreading,
    names: Names | None = None,
) -> tuple[list[Line], Names | None]:
    """Return the lines of a page with those of each ruled table replaced by its rows as Markdown.

    A table stays as lines if its rows are uncertain, or if it lost a line as a running head. One that begins the page
    without names of its own has those of the table that ends the page before, if the columns are the same.

    Args:
        lines: lines that are left of the page.
        before: all lines of the page.
        found: ruled tables of the page, to which the pieces of the lines refer.
        spreading: limits the copies of values of merged cells.
        names: of the table at the end of the page before, if there is one.

    Returns:
        The lines, and the names of the table at their end, if there is one that has names.
    """
    texts: dict[int, list[Line]] = {}
    named: dict[int, Names | None] = {}
    left, had = _by_table(lines), _by_table(before)
    for number, lattice in enumerate(found):
        own = left[number]
        pieces = [piece for line in own for piece in line.pieces]
        if own == had[number] and all(piece.table == number and piece.cell >= 0 for piece in pieces):
            above = names if lines and own and own[0] is lines[0] else None
            written, named[number] = _markdown(pieces, lattice, _Frame(own, BLOCKS * number, above), spreading)
            if written:
                texts[number] = written
    result: list[Line] = []
    for line in lines:
        number = line.pieces[0].table if line.pieces else -1
        if number not in texts:
            result.append(line)
        else:
            result += texts[number]
            texts[number] = []
    last = lines[-1].pieces if lines else ()
    return result, named.get(last[0].table) if last else None


def _by_table(lines: Sequence[Line]) -> dict[int, list[Line]]:
    """Return the lines of each table: number of the table -> lines."""
    found: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        for number in dict.fromkeys(piece.table for piece in line.pieces):
            found[number].append(line)
    return found


@dataclass(frozen=True, slots=True)
class _Frame:
    """The place at which a table is written."""

    lines: Sequence[Line]
    """lines of the page that it replaces"""
    first_block: int
    above: Names | None
    """names on the page before"""


def _markdown(
    pieces: Sequence[CellText], lattice: Lattice, frame: _Frame, spreading: Spreading
) -> tuple[list[Line], Names | None]:
    shape = _shape(lattice)
    cells: dict[int, list[CellText]] = defaultdict(list)
    for piece in pieces:
        cells[piece.cell].append(piece)
    if not _is_table(shape, cells):
        return [], None
    rows = _rows(shape, cells, spreading)
    if rows is None:
        return [], None
    rows = [row for row in rows if any(row)]
    title = rows.pop(0)[0] if len(rows) > 2 and _is_title(shape, cells) else ""
    table, named = with_names(rows)
    if not named and not title and frame.above is not None and frame.above.continue_in(lattice):
        table, named = [list(frame.above.cells), *rows], True
    size = Counter(line.size for line in frame.lines).most_common(1)[0][0]
    left, right, top = lattice.across[0], lattice.across[-1], lattice.down[0]
    step = (top - lattice.down[-1]) / max(1, len(table) + 1)
    written = [Line(title, left, right, top - step, top, size)] if title else []
    row = 0
    for number, block in enumerate(table_blocks(table, header=named)):
        for text in block.split("\n"):
            bottom = top - min(row + 1, len(table)) * step
            written.append(Line(text, left, right, bottom, bottom + step, size, (), frame.first_block + number))
            row += 1
    return written, Names(lattice.across, tuple(table[0])) if named else None


def _shape(lattice: Lattice) -> _Shape:
    extents: dict[int, tuple[int, int, int, int]] = {}
    for row, numbers in enumerate(lattice.cells):
        for column, number in enumerate(numbers):
            top, left, bottom, right = extents.get(number, (row, column, row, column))
            extents[number] = (top, min(left, column), max(bottom, row + 1), max(right, column + 1))
    return _Shape(len(lattice.cells), len(lattice.cells[0]), extents)


def _is_table(shape: _Shape, cells: Mapping[int, Sequence[CellText]]) -> bool:
    if len(shape.extents) < _LEAST_CELLS * shape.height * shape.width:
        return False
    if len(cells) < max(4, _LEAST_FILLED * len(shape.extents)):
        return False
    if any(sum(len(piece.text) for piece in found) > _MOST_IN_CELL for found in cells.values()):
        return False
    filled = Counter(shape.extents[number][0] for number in cells)
    return sum(count > 1 for count in filled.values()) > 1


def _is_title(shape: _Shape, cells: Mapping[int, Sequence[CellText]]) -> bool:
    """Return True if one cell takes the whole first row."""
    return any(shape.extents[number] == (0, 0, 1, shape.width) for number in cells)


def _rows(shape: _Shape, cells: Mapping[int, Sequence[CellText]], spreading: Spreading) -> Rows | None:
    """Return the cells of each row; None if rows without rules between them are likely."""
    rows: Rows = []
    of_row: dict[int, dict[int, Sequence[CellText]]] = defaultdict(dict)
    tall: list[int] = []
    for number, found in cells.items():
        top, _, bottom, _ = shape.extents[number]
        of_row[top][number] = found
        tall += [number] if bottom - top > 1 else []
    for row in range(shape.height):
        own = of_row[row]
        divided = [own] if any(number in own for number in tall) else _divided(own)
        if divided is None:
            return None
        for part in divided:
            texts = [""] * shape.width
            for number, found in part.items():
                text = _text(found)
                _, left, _, right = shape.extents[number]
                texts[left] = text
                for column in range(left + 1, right if right - left < shape.width else left):
                    # A value applies to every column that its cell covers.
                    texts[column] = text if spreading.allows(text) else ""
            rows.append(texts)
        for number in tall:
            top, left, bottom, right = shape.extents[number]
            if top < row < bottom and spreading.allows(text := _text(cells[number]), right - left):
                rows[-1][left:right] = [text] * (right - left)
    return rows


def _divided(own: Mapping[int, Sequence[CellText]]) -> Sequence[Mapping[int, Sequence[CellText]]] | None:
    """Divide a row at its lines if each is a row of its own; None if that is uncertain."""
    height = len(_lines([piece for found in own.values() for piece in found]))
    lines = {number: _lines(found) for number, found in own.items()}
    several = {number: found for number, found in lines.items() if len(found) > 1}
    if height < 2 or len(several) < 2:
        return [own]
    numeric = any(all(is_number(piece.text) for piece in own[number]) for number in several)
    if all(len(found) == height for found in lines.values()) and (numeric or height > _MOST_LINES):
        return [{number: found[place] for number, found in lines.items()} for place in range(height)]
    aligned = [found for found in several.values() if len(found) == height]
    if numeric or (height > _MOST_LINES and len(aligned) > 1):
        return None
    return [own]


def _lines(pieces: Sequence[CellText]) -> list[list[CellText]]:
    """Return the lines that pieces make, from the top, each from left to right."""
    lines: list[list[CellText]] = []
    for piece in sorted(pieces, key=lambda piece: -piece.bottom):
        if lines and lines[-1][0].bottom - piece.bottom < _ON_LINE * piece.height:
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return [sorted(line, key=lambda piece: piece.left) for line in lines]


def _text(pieces: Sequence[CellText]) -> str:
    """Return the text of a cell; a word that is divided at the end of a line keeps its mark."""
    text = ""
    for line in _lines(pieces):
        for piece in line:
            text += piece.text if not text or text.endswith(HYPHEN_MARK) else f" {piece.text}"
    return text
