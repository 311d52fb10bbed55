"""pypdf's reader, parsing only the objects that measuring what pages draw needs.

pypdf parses all objects of a stream when one is asked for, and byte by byte. Hardly any annotation is drawn, and that
was most of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PdfStreamError
from pypdf.generic import IndirectObject, NumberObject, read_object

from parquetry.extract.pdf.plain_objects import plain_dictionary, plain_object

_SPACES = re.compile(rb"[ \t\r\n\f\0]*+")
_SPELLINGS = {
    name: re.compile(b"/" + b"".join(b"(?:%c|(?i:#%02x))" % (letter, letter) for letter in name.encode()[1:]))
    for name in ("/AP", "/FileAttachment")
}
"""name -> every spelling of it"""
_HEADER = re.compile(rb"([0-9]{1,9})[ \r\n]([0-9]{1,5})[ \r\n]obj[ \r\n]*+(?=<<)")
"""beginning of a dictionary that is an object of its own"""
_PIECE = re.compile(rb"[^<>()%]++|(<<)|(>>)|<[0-9A-Fa-f \t\r\n\f]*+>|\((?:[^()\\]++|\\.)*+\)", re.DOTALL)
"""part of a dictionary; by comments, and parentheses within strings, its end would be uncertain"""
_IN_FILE, _IN_STREAM = 1, 2
"""kinds of entries of a cross-reference stream; 0 is a free object"""
_FIELDS = 3
_WIDEST = 8
"""bytes of a field"""
_LONGEST = 10_000
"""bytes of a dictionary that are searched for names"""


@dataclass(frozen=True, slots=True)
class _Packed:
    """The unpacked content of an object stream."""

    data: bytes
    places: dict[int, int]
    """number of an object -> its index, before spaces"""
    names: frozenset[str]
    """those of `_SPELLINGS` that occur in it"""

    def place_of(self, number: int) -> int | None:
        """Return the index of the first byte of an object; None if the stream does not have it."""
        place = self.places.get(number)
        if place is not None and self.data.startswith(b"<", place):
            return place
        spaces = None if place is None else _SPACES.match(self.data, place)
        return None if spaces is None else spaces.end()


class OneByOneReader(PdfReader):
    """Reads an object of an object stream without parsing the others.

    What is not exactly as ISO 32000-1, 7.3 and 7.5.7 describe is left to pypdf, which repairs some.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._packed: dict[int, _Packed | None] = {}
        self._entries: tuple[Any, Any] | None = None
        """widths of the fields of the reference stream that is being read, and the stream"""
        super().__init__(BytesIO(content), strict=False)

    def _sanitize_pdf15_xref_stream_index_pairs(self, index_pairs: Any, entry_sizes: Any, xref_stream: Any) -> Any:
        self._entries = entry_sizes, xref_stream
        return super()._sanitize_pdf15_xref_stream_index_pairs(index_pairs, entry_sizes, xref_stream)

    def _read_xref_subsections(self, idx_pairs: Any, get_entry: Any, used_before: Any) -> None:
        """Read the places of objects like pypdf, which reads each field of each by itself."""
        pairs = list(self._pairs(idx_pairs))
        found, self._entries = self._entries, None
        places = None if found is None else reference_entries(*found, sum(count for _, count in pairs))
        if places is None:
            super()._read_xref_subsections(idx_pairs, get_entry, used_before)
            return
        packed = self.xref_objStm
        for start, count in pairs:
            for number, (kind, second, third) in zip(range(start, start + count), places, strict=False):
                if kind == _IN_FILE:
                    known = self.xref.setdefault(third, {})
                    if number not in known and number not in packed:
                        known[number] = second
                elif kind == _IN_STREAM and number not in packed and number not in self.xref.get(0, ()):
                    packed[number] = (second, third)

    def lacks(self, reference: Any, name: str) -> bool:
        """True if a name is certainly not in a dictionary; tells without parsing it.

        Args:
            reference: as stored where the dictionary is used; of any type.
            name: `/AP` or `/FileAttachment`.
        """
        if not isinstance(reference, IndirectObject):
            return False
        if reference.generation or reference.idnum not in self.xref_objStm:
            return self._lacks_in_file(reference, name)
        packed = self._stream_of(reference.idnum)
        place = None if packed is None else packed.place_of(reference.idnum)
        if packed is None or place is None:
            return False
        if name not in packed.names:
            return packed.data.startswith(b"<<", place)
        return _lacks(packed.data, place, name)

    def _lacks_in_file(self, reference: IndirectObject, name: str) -> bool:
        place = self._place_in_file(reference)
        return place is not None and _lacks(self._content, place, name)

    def _place_in_file(self, reference: IndirectObject) -> int | None:
        """Return the index at which a dictionary that is an object of its own begins; None if that is uncertain."""
        number, generation = reference.idnum, reference.generation
        start = self.xref.get(generation, {}).get(number)
        if not start or self.xref_free_entry.get(generation, {}).get(number, False):
            return None
        header = _HEADER.match(self._content, start)
        return header.end() if header and (int(header[1]), int(header[2])) == (number, generation) else None

    def get_object(self, indirect_reference: int | IndirectObject) -> Any:
        """Return an object as pypdf does, faster for plain dictionaries and streams."""
        reference = indirect_reference
        if isinstance(reference, int):
            reference = IndirectObject(reference, 0, self)
        key = (reference.generation, reference.idnum)
        if key in self.resolved_objects:
            return self.resolved_objects[key]
        locked = self._encryption is not None and not self._encryption.is_decrypted()
        if not locked:
            found = self._plain_object(reference)
            if found is not None:
                self.cache_indirect_object(reference.generation, reference.idnum, found)
                return found
        return super().get_object(reference)

    def _plain_object(self, reference: IndirectObject) -> Any | None:
        """Return a plain dictionary, or a plain stream of the file itself; None for what pypdf has to read."""
        if not reference.generation and reference.idnum in self.xref_objStm:
            packed = self._stream_of(reference.idnum)
            place = None if packed is None else packed.place_of(reference.idnum)
            return None if packed is None or place is None else plain_dictionary(packed.data, place, self)
        place = self._place_in_file(reference)
        if place is None:
            return None
        parse = plain_object if self._encryption is None else plain_dictionary
        return parse(self._content, place, self)

    def forget(self, reference: IndirectObject) -> None:
        """Drop an object, with the unpacked content of a stream, from memory; it is read again when it is asked for."""
        self.resolved_objects.pop((reference.generation, reference.idnum), None)

    def _get_object_from_stream(self, indirect_reference: IndirectObject) -> Any:
        packed = self._stream_of(indirect_reference.idnum)
        place = None if packed is None else packed.place_of(indirect_reference.idnum)
        if packed is None or place is None:
            return super()._get_object_from_stream(indirect_reference)
        stream = BytesIO(packed.data)
        stream.seek(place)
        try:
            found = read_object(stream, self)
        except PdfStreamError:
            return super()._get_object_from_stream(indirect_reference)
        self.cache_indirect_object(0, indirect_reference.idnum, found)
        return found

    def _stream_of(self, number: int) -> _Packed | None:
        """Return the object stream that an object is in; None if it is not as it should be."""
        stream = self.xref_objStm[number][0]
        if stream not in self._packed:
            # One that is itself in an object stream may contain itself.
            self._packed[stream] = None
            if stream not in self.xref_objStm:
                self._packed[stream] = _unpacked(IndirectObject(stream, 0, self).get_object())
        return self._packed[stream]


def _lacks(data: bytes, place: int, name: str) -> bool:
    """Return True if a dictionary begins at an index and certainly ends before any spelling of a name."""
    spelled = _SPELLINGS[name].search(data, place, place + _LONGEST)
    end = spelled.start() if spelled else place + _LONGEST
    depth = 0
    while piece := _PIECE.match(data, place, end):
        place = piece.end()
        depth += (piece.lastindex == 1) - (piece.lastindex == 2)
        if not depth:
            return piece.lastindex is not None
    return False


def reference_entries(widths: Any, stream: Any, count: int) -> Iterator[tuple[int, int, int]] | None:
    """Return the fields of the first entries of a cross-reference stream; None if pypdf must look at it.

    Args:
        widths: `/W` of the stream, bytes of each field.
        stream: with the entries.
        count: number of entries.

    Source: ISO 32000-1, 7.5.8
    """
    if len(widths) != _FIELDS or not all(type(width) is NumberObject and 0 < width <= _WIDEST for width in widths):
        return None
    step = sum(widths)
    data = stream.get_data()[: step * count]
    if len(data) < step * count or max(data[::step], default=0) > _IN_STREAM or widths[0] != 1:
        return None
    columns: list[Iterable[int]] = []
    first = 0
    for width in widths:
        column: Iterable[int] = data[first::step]
        for place in range(first + 1, first + width):
            column = [high << 8 | low for high, low in zip(column, data[place::step], strict=True)]
        columns.append(column)
        first += width
    return zip(*columns, strict=True)


def _unpacked(stream: Any) -> _Packed | None:
    count, first = stream.get("/N"), stream.get("/First")
    if stream["/Type"] != "/ObjStm" or not isinstance(count, NumberObject) or not isinstance(first, NumberObject):
        return None
    data: bytes = stream.get_data()
    if not 0 <= first <= len(data):
        return None
    numbers = data[:first].split()
    if count < 0 or len(numbers) != 2 * count or not all(map(bytes.isdigit, numbers)):
        return None
    offsets = [int(first) + int(offset) for offset in numbers[1::2]]
    if offsets != sorted(set(offsets)) or (offsets and offsets[-1] >= len(data)):
        return None
    places = dict(zip(map(int, numbers[::2]), offsets, strict=True))
    escaped = b"#" in data
    names = frozenset(
        name for name, spelling in _SPELLINGS.items() if name.encode() in data or (escaped and spelling.search(data))
    )
    return _Packed(data, places, names)
