"""pypdf's reader, parsing the objects of an object stream one by one.

pypdf parses all objects of a stream when one is asked for. Measuring what pages draw needs few of them: hardly any
annotation is drawn, and that was most of the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PdfStreamError
from pypdf.generic import IndirectObject, NumberObject, read_object

_SPACES = re.compile(rb"[ \t\r\n\f\0]*+")
_SPELLINGS = {
    name: re.compile(b"/" + b"".join(b"(?:%c|(?i:#%02x))" % (letter, letter) for letter in name.encode()[1:]))
    for name in ("/AP", "/FileAttachment")
}
"""name -> every spelling of it"""


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

    A stream that is not exactly as ISO 32000-1, 7.5.7 describes is left to pypdf, which repairs some.
    """

    def __init__(self, content: bytes) -> None:
        self._packed: dict[int, _Packed | None] = {}
        super().__init__(BytesIO(content), strict=False)

    def lacks(self, reference: Any, name: str) -> bool:
        """True if a name is certainly not in a dictionary; tells without parsing it.

        Args:
            reference: as stored where the dictionary is used; of any type.
            name: `/AP` or `/FileAttachment`.
        """
        if not isinstance(reference, IndirectObject) or reference.generation or reference.idnum not in self.xref_objStm:
            return False
        packed = self._stream_of(reference.idnum)
        if packed is None or name in packed.names:
            return False
        place = packed.place_of(reference.idnum)
        return place is not None and packed.data.startswith(b"<<", place)

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
