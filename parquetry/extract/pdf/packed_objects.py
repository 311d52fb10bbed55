"""pypdf's reader, parsing only the objects that measuring what pages draw needs.

pypdf parses all objects of a stream when one is asked for, and byte by byte. Hardly any annotation is drawn, and that
was most of the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PdfStreamError
from pypdf.generic import IndirectObject, NumberObject, read_object

from parquetry.extract.pdf.plain_objects import plain_dictionary

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
        spaces = None if place is None else _SPACES.match(self.data, place)
        return None if spaces is None else spaces.end()


class OneByOneReader(PdfReader):
    """Reads an object of an object stream without parsing the others.

    What is not exactly as ISO 32000-1, 7.3 and 7.5.7 describe is left to pypdf, which repairs some.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._packed: dict[int, _Packed | None] = {}
        super().__init__(BytesIO(content), strict=False)

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
        """Return an object as pypdf does, faster for plain dictionaries."""
        reference = indirect_reference
        if isinstance(reference, int):
            reference = IndirectObject(reference, 0, self)
        key = (reference.generation, reference.idnum)
        locked = self._encryption is not None and not self._encryption.is_decrypted()
        packed = not reference.generation and reference.idnum in self.xref_objStm
        if not packed and not locked and key not in self.resolved_objects:
            place = self._place_in_file(reference)
            found = None if place is None else plain_dictionary(self._content, place, self)
            if found is not None:
                self.cache_indirect_object(reference.generation, reference.idnum, found)
                return found
        return super().get_object(reference)

    def forget(self, reference: IndirectObject) -> None:
        """Drop an object, with the unpacked content of a stream, from memory; it is read again when it is asked for."""
        self.resolved_objects.pop((reference.generation, reference.idnum), None)

    def _get_object_from_stream(self, indirect_reference: IndirectObject) -> Any:
        packed = self._stream_of(indirect_reference.idnum)
        place = None if packed is None else packed.place_of(indirect_reference.idnum)
        if packed is None or place is None:
            return super()._get_object_from_stream(indirect_reference)
        found: Any = plain_dictionary(packed.data, place, self)
        if found is None:
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
    names = frozenset(name for name, spelling in _SPELLINGS.items() if spelling.search(data))
    return _Packed(data, places, names)
