"""Finds the lines that a page draws: horizontal and vertical rules, whatever they are drawn as."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, repeat
from typing import Any

from parquetry.extract.pdf.direct import ADDRESS, HANDLE, direct, handle
from parquetry.extract.pdf.lattice import Rule

_MOST_OBJECTS = 2000
"""objects of a page above which it is not searched for rules: a letter may be an object"""
_MOST_SEGMENTS = 4000
"""segments of paths of a page that are looked at; maps and charts have more"""
_MOST_DEPTH = 3
"""levels of nested forms"""
_THICK = 3.0
"""points of the thickest rule"""
_SHORT = 4.0
"""points of the shortest rule"""
_RECTANGLE = 5
"""segments of a rectangle at most"""

Point = tuple[float, float]
Matrix = tuple[float, float, float, float, float, float]
_AS_IT_IS: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def page_rules(page: Any) -> tuple[list[Rule], list[Rule]]:
    """Return the horizontal and the vertical rules of a page, in points of its own coordinates.

    A page without both, which has no table with rows and columns, has none.

    Args:
        page: a `pypdfium2.PdfPage`.
    """
    calls, search = _calls(), _Search()
    owner = handle(page.raw)
    count = calls.objects_of_page(owner)
    if count <= _MOST_OBJECTS:
        search.look_through(map(calls.object_of_page, repeat(owner, count), range(count)), _AS_IT_IS, 0)
    if len(search.horizontal) < 2 or not search.vertical:
        return [], []
    return [Rule(*ends) for ends in search.horizontal], [Rule(*ends) for ends in search.vertical]


class _Calls:
    """The functions of PDFium that find rules; named after what they return."""

    def __init__(self) -> None:
        from pypdfium2 import raw

        number, boolean = ctypes.c_int, ctypes.c_int
        self.PATH, self.FORM = raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_FORM
        self.MOVE, self.CURVE = raw.FPDF_SEGMENT_MOVETO, raw.FPDF_SEGMENT_BEZIERTO
        self.objects_of_page = direct(raw.FPDFPage_CountObjects, number, HANDLE)
        self.object_of_page = direct(raw.FPDFPage_GetObject, HANDLE, HANDLE, number)
        self.objects_of_form = direct(raw.FPDFFormObj_CountObjects, number, HANDLE)
        self.object_of_form = direct(raw.FPDFFormObj_GetObject, HANDLE, HANDLE, ctypes.c_ulong)
        self.kind = direct(raw.FPDFPageObj_GetType, number, HANDLE)
        self.bounds = direct(raw.FPDFPageObj_GetBounds, boolean, HANDLE, ADDRESS, ADDRESS, ADDRESS, ADDRESS)
        self.matrix = direct(raw.FPDFPageObj_GetMatrix, boolean, HANDLE, ADDRESS)
        self.draw_mode = direct(raw.FPDFPath_GetDrawMode, boolean, HANDLE, ADDRESS, ADDRESS)
        self.segments = direct(raw.FPDFPath_CountSegments, number, HANDLE)
        self.segment = direct(raw.FPDFPath_GetPathSegment, HANDLE, HANDLE, number)
        self.kind_of_segment = direct(raw.FPDFPathSegment_GetType, number, HANDLE)
        self.point = direct(raw.FPDFPathSegment_GetPoint, boolean, HANDLE, ADDRESS, ADDRESS)
        self.closes = direct(raw.FPDFPathSegment_GetClose, boolean, HANDLE)


_calls = cache(_Calls)


class _Search:
    """Collects the rules of one page."""

    def __init__(self) -> None:
        self.horizontal: list[tuple[float, float, float]] = []
        self.vertical: list[tuple[float, float, float]] = []
        self._objects = _MOST_OBJECTS
        self._segments = _MOST_SEGMENTS
        self._bounds = (ctypes.c_float * 4)()
        self._numbers = (ctypes.c_float * 6)()
        self._modes = (ctypes.c_int * 2)()

    def look_through(self, drawn: Iterator[int], matrix: Matrix, depth: int) -> None:
        """Add the rules among objects of a page or form.

        Args:
            drawn: handles of the objects.
            matrix: from their coordinates to those of the page.
            depth: number of forms that they stand in.
        """
        calls, edges = _calls(), self._bounds
        kind, bounds, path, form = calls.kind, calls.bounds, calls.PATH, calls.FORM
        left_at = ctypes.addressof(edges)
        bottom_at, right_at, top_at = left_at + 4, left_at + 8, left_at + 12
        items = list(drawn)
        for item, found in zip(items, map(kind, items), strict=True):
            if found == path:
                bounds(item, left_at, bottom_at, right_at, top_at)
                left, bottom, right, top = edges
                if right - left > _THICK and top - bottom > _THICK:
                    self._add_edges(item, matrix)
                elif matrix is _AS_IT_IS:
                    self._add(left, bottom, right, top)
                else:
                    self._add_box([_point((left, bottom), matrix), _point((right, top), matrix)])
            elif found == form and depth < _MOST_DEPTH:
                count = calls.objects_of_form(item)
                self._objects -= max(0, count)
                if count > 0 and self._objects > 0:
                    inner = map(calls.object_of_form, repeat(item, count), range(count))
                    self.look_through(inner, _after(self._matrix(item), matrix), depth + 1)

    def _add(self, left: float, bottom: float, right: float, top: float) -> None:
        width, height = right - left, top - bottom
        if height <= _THICK and width >= _SHORT and width > height:
            self.horizontal.append(((bottom + top) / 2, left, right))
        elif width <= _THICK and height >= _SHORT:
            self.vertical.append(((left + right) / 2, bottom, top))

    def _add_box(self, points: list[Point]) -> None:
        across = [x for x, _ in points]
        up = [y for _, y in points]
        self._add(min(across), min(up), max(across), max(up))

    def _add_edges(self, path: int, matrix: Matrix) -> None:
        """Add the straight segments of a path that is stroked, and thin parts of one that is filled."""
        calls, modes = _calls(), self._modes
        calls.draw_mode(path, ctypes.addressof(modes), ctypes.addressof(modes) + 4)
        fill, stroke = modes
        if not stroke and not fill:
            # A shape that only clips.
            return
        count = calls.segments(path)
        if not stroke and count <= _RECTANGLE:
            # The background of a cell.
            return
        self._segments -= count
        if self._segments < 0:
            return
        matrix = _after(self._matrix(path), matrix)
        for points in self._subpaths(path, count):
            corners = [_point(point, matrix) for point in points]
            if not stroke:
                self._add_box(corners)
                continue
            for ends in pairwise(corners):
                self._add_box(list(ends))

    def _subpaths(self, path: int, count: int) -> Iterator[list[Point]]:
        calls, numbers = _calls(), self._numbers
        at = ctypes.addressof(numbers)
        points: list[Point] = []
        for place in range(count):
            segment = calls.segment(path, place)
            kind = calls.kind_of_segment(segment)
            calls.point(segment, at, at + 4)
            if kind == calls.MOVE:
                if len(points) > 1:
                    yield points
                points = []
            points.append((numbers[0], numbers[1]))
            if kind != calls.CURVE and calls.closes(segment):
                points.append(points[0])
        if len(points) > 1:
            yield points

    def _matrix(self, drawn: int) -> Matrix:
        numbers = self._numbers
        if not _calls().matrix(drawn, ctypes.addressof(numbers)):
            return _AS_IT_IS
        a, b, c, d, e, f = numbers
        return a, b, c, d, e, f


def _after(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    ta, tb, tc, td, te, tf = then
    return (
        a * ta + b * tc, a * tb + b * td, c * ta + d * tc, c * tb + d * td, e * ta + f * tc + te, e * tb + f * td + tf,
    )  # fmt: skip


def _point(point: Point, matrix: Matrix) -> Point:
    a, b, c, d, e, f = matrix
    return a * point[0] + c * point[1] + e, b * point[0] + d * point[1] + f
