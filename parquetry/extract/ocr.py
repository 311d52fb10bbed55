"""Reads text in pictures with RapidOCR, whose models are part of its wheel: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median_low
from typing import Any

from parquetry.errors import MissingExtra
from parquetry.extract.layout import HYPHEN_MARK, Line
from parquetry.extract.readers import ocr_available
from parquetry.freed_memory import trim

TIME_SHARE = 0.7
"""share of a document's time limit for OCR; the pages read by then are kept instead of losing the document"""
_THREADS = 2
"""threads of the engine; extraction runs one process per core, but only one of them reads a picture at a time"""
_LEAST_CONFIDENCE = 0.6
_LEAST_CONFIDENCE_ALONE = 0.9
"""minimum confidence for a single character, since shapes of every kind are taken for one"""
_DOUBT = 0.8
"""confidence; if half of the lines are below it, the picture is tried upside down, too"""
_LONGEST_SIDE = 2600
"""pixels; a page at 200 dpi is not scaled down"""
_DETECTION_SIDE = 1600
"""pixels, for detection; lines can be located at a lower resolution than they can be read"""
_LEAST_SIDE = 8
"""pixels; smaller pictures cannot contain text"""
_TILE_OVERLAP = 240
"""pixels, so that each line is whole in one tile"""
_CUTS = 80
_MOST_LOOKED_AT = 20_000_000
"""line inspections allowed when sorting a picture, about two seconds; the remaining lines are read row by row"""
_ROW_REACH = 0.45
"""multiple of the line height"""
_COLUMN_GAP = 0.6
"""multiple of the line height"""
_RUNNING_WIDTH = 8
"""multiple of the line height; half of the lines of a text column are wider"""


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line of text in a picture; coordinates in pixels from the upper left."""

    text: str
    confidence: float
    """confidence of the engine, 0 to 1"""
    left: float
    top: float
    right: float
    bottom: float


available = ocr_available
_turns: Path | None = None


def take_turns(lock: Path) -> None:
    """Let the processes that share this lock file read pictures one at a time.

    Reading a page at 200 dpi takes more than 600 MB, and the engine's threads use several cores anyway. A process
    that is killed releases its lock.

    Args:
        lock: an existing file on the local machine.
    """
    global _turns
    _turns = lock


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other process reads a picture; before and after, return free memory to the system.

    The allocator would otherwise keep the memory of hundreds of layers for a next picture that may never come.
    """
    if _turns is None:
        yield
        return
    from filelock import lock_descriptor

    with _turns.open("rb") as held:
        lock_descriptor(held.fileno())
        trim()
        try:
            yield
        finally:
            trim()


def read(image: Any) -> list[OcrLine]:
    """Return the lines of text in a picture, in reading order.

    Args:
        image: a Pillow image in RGB.

    Raises:
        MissingExtra: the `ocr` extra is not installed.
    """
    lines: list[OcrLine] = []
    width, height = image.size
    if min(width, height) < _LEAST_SIDE:
        return lines
    # A long screenshot scaled down as a whole would be too small to read.
    step = max(_LONGEST_SIDE, width) - _TILE_OVERLAP if height > 2 * width else height
    for top in range(0, height, step):
        bottom = min(top + step + _TILE_OVERLAP, height)
        first = top + _TILE_OVERLAP / 2 if top else 0
        last = bottom - _TILE_OVERLAP / 2 if bottom < height else height
        tile = image if step >= height else image.crop((0, top, width, bottom))
        lines += [line for line in _read_tile(tile, top) if first <= _middle(line) < last]
        if bottom == height:
            break
    return in_reading_order(lines)


def _read_tile(image: Any, offset: int) -> list[OcrLine]:
    lines = _recognise(image, offset)
    if median_low([line.confidence for line in lines] or [1.0]) < _DOUBT:
        turned = _recognise(image.rotate(180), offset)
        lines = max(lines, turned, key=lambda found: sum(line.confidence * len(line.text) for line in found))
    least = {True: _LEAST_CONFIDENCE_ALONE, False: _LEAST_CONFIDENCE}
    return [line for line in lines if line.confidence >= least[len(line.text) == 1]]


def _recognise(image: Any, offset: int) -> list[OcrLine]:
    import numpy as np

    with _turn():
        result = _engine()(np.asarray(image)[:, :, ::-1])
    if result.boxes is None or result.txts is None:
        return []
    lines = []
    for box, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
        if text.strip():
            left, top, right, bottom = map(float, (*box.min(axis=0), *box.max(axis=0)))
            lines.append(OcrLine(text.strip(), float(score), left, top + offset, right, bottom + offset))
    return lines


@cache
def _engine() -> Any:
    """Return the engine, created once per process: loading its models takes longer than reading a page."""
    if not available():
        raise MissingExtra("ocr", "reading text in images")
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": _LONGEST_SIDE,
            # By default small pictures are enlarged for detection: five times slower, without finding more.
            "Det.limit_type": "max",
            "Det.limit_side_len": _DETECTION_SIDE,
            "Global.use_cls": False,  # it turns some upright long lines upside down
            "Rec.rec_batch_num": 1,  # batches are padded to the longest line: a quarter slower on a CPU
            "EngineConfig.onnxruntime.intra_op_num_threads": _THREADS,
            "EngineConfig.onnxruntime.inter_op_num_threads": _THREADS,
        }
    )


def in_reading_order(lines: Sequence[OcrLine]) -> list[OcrLine]:
    """Sort lines in reading order: blocks side by side one after the other, each from top to bottom.

    A recursive XY-cut: split into columns where a gap runs through; otherwise find the tallest stripe of the picture
    with columns, and read what is above it, the stripe, and what is below. Vertical lines of text are read from right
    to left.

    Source:
        G. Nagy, S. Seth: Hierarchical representation of optically scanned documents, ICPR 1984.
    """
    return _ordered(lines, _Budget(_MOST_LOOKED_AT))


@dataclass(slots=True)
class _Budget:
    """The remaining number of line inspections."""

    left: int


def _ordered(lines: Sequence[OcrLine], budget: _Budget) -> list[OcrLine]:
    if len(lines) < 2:
        return list(lines)
    upright = sum(line.bottom - line.top > 2 * (line.right - line.left) for line in lines)
    if upright * 2 > len(lines):
        return sorted(lines, key=lambda line: (-line.right, line.top))
    height = median_low(line.bottom - line.top for line in lines)
    between = _column_gap(lines, height)
    if between is not None:
        left = [line for line in lines if line.right <= between]
        right = [line for line in lines if line.right > between]
        return _ordered(left, budget) + _ordered(right, budget)
    stripe = _largest_stripe(lines, height, budget)
    if stripe is None:
        return _row_by_row(lines)
    above, beside, below = stripe
    return _row_by_row(above) + _ordered(beside, budget) + _ordered(below, budget)


def _largest_stripe(
    lines: Sequence[OcrLine], height: float, budget: _Budget
) -> tuple[list[OcrLine], list[OcrLine], list[OcrLine]] | None:
    """Return the lines above, inside and below the tallest stripe that has columns; None if no stripe has any."""
    cuts = [float("-inf"), *_row_gaps(lines)[:_CUTS], float("inf")]
    spans = sorted(combinations(range(len(cuts)), 2), key=lambda span: span[0] - span[1])
    for first, last in spans:
        budget.left -= len(lines)
        if budget.left < 0:
            break
        beside = [line for line in lines if cuts[first] < _middle(line) <= cuts[last]]
        if len(beside) < len(lines) and _column_gap(beside, height) is not None:
            above = [line for line in lines if _middle(line) <= cuts[first]]
            return above, beside, [line for line in lines if _middle(line) > cuts[last]]
    return None


def _column_gap(lines: Sequence[OcrLine], height: float) -> float | None:
    """Return the left edge of a vertical gap between two blocks of several rows each; None if there is none."""
    edge = float("-inf")
    best: tuple[float, float] | None = None
    for line in sorted(lines, key=lambda line: line.left):
        gap = line.left - edge
        if edge > float("-inf") and gap > _COLUMN_GAP * height and (best is None or gap > best[0]):
            best = (gap, edge)
        edge = max(edge, line.right)
    if best is None:
        return None
    left = [line for line in lines if line.right <= best[1]]
    right = [line for line in lines if line.right > best[1]]
    running = all(_runs_on(block, height) for block in (left, right))
    return best[1] if running else None


def _runs_on(block: Sequence[OcrLine], height: float) -> bool:
    """Return True for a block of running text, read as a whole; the cells of a table are read row by row."""
    widths = sorted(line.right - line.left for line in block)
    return len(block) > 2 and widths[len(block) // 2] > _RUNNING_WIDTH * height


def _row_gaps(lines: Sequence[OcrLine]) -> list[float]:
    """Return the heights without any line, from the top; boxes of neighbouring lines overlap slightly."""
    gaps = []
    edge: float | None = None
    for line in sorted(lines, key=_middle):
        slack = 0.25 * (line.bottom - line.top)
        if edge is not None and line.top + slack > edge:
            gaps.append(edge)
        edge = max(edge if edge is not None else line.bottom - slack, line.bottom - slack)
    return gaps


def _middle(line: OcrLine) -> float:
    return (line.top + line.bottom) / 2


def _row_by_row(lines: Sequence[OcrLine]) -> list[OcrLine]:
    """Join the lines of each row: text at the same height is read together, as the cells of a table are."""
    rows: list[list[OcrLine]] = []
    for line in sorted(lines, key=_middle):
        if rows and _middle(line) - _middle(rows[-1][0]) < _ROW_REACH * (rows[-1][0].bottom - rows[-1][0].top):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [_joined(sorted(row, key=lambda line: line.left)) for row in rows]


def _joined(row: Sequence[OcrLine]) -> OcrLine:
    return OcrLine(
        " ".join(cell.text for cell in row),
        confidence_of(row) or 0.0,
        row[0].left,
        min(cell.top for cell in row),
        max(cell.right for cell in row),
        max(cell.bottom for cell in row),
    )


def confidence_of(lines: Sequence[OcrLine]) -> float | None:
    """Return the mean confidence of the lines, weighted by their characters, 0 to 1; None if there are none."""
    characters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / characters if characters else None


def as_text_lines(lines: Sequence[OcrLine]) -> list[Line]:
    """Convert the lines to the form used for page layout, marking words divided at line ends."""
    marked = []
    for i, line in enumerate(lines):
        text = line.text
        goes_on = i + 1 < len(lines) and lines[i + 1].text[:1].islower()
        if goes_on and len(text) > 2 and text.endswith("-") and text[-2].isalpha():
            text = text[:-1] + HYPHEN_MARK
        marked.append(Line(text, line.left, line.right, -line.bottom, -line.top, 0.0))
    return marked
