"""Citations: marks that a model writes into its answer, taken out of the text and turned into annotations.

A model cites the third result as `[cite:3]`. OpenAI's clients get the text without marks, and for each mark an
annotation whose `index` is its place in that text, in characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_OPEN = "[cite:"
_MARK = re.compile(r"( ?)\[cite:([0-9, ]{1,60})\]")
_INSIDE = frozenset("0123456789, ")
_MOST_INSIDE = 60
"""characters between the beginning of a mark and its end"""


def mark(number: int) -> str:
    """Return the mark that cites a result."""
    return f"{_OPEN}{number}]"


def without_marks(text: str) -> str:
    """Return the text of a document in which nothing is a mark, which a model might copy."""
    return text.replace(_OPEN, f"({_OPEN[1:]}")


@dataclass(frozen=True, slots=True)
class CitedFile:
    """The file of a result."""

    file_id: str
    filename: str


@dataclass(slots=True)
class CitedFiles:
    """The files of all results of a response, numbered from 1 in the order in which the model reads them."""

    _files: list[CitedFile] = field(default_factory=list)

    def add(self, file: CitedFile) -> int:
        """Return the number of one more result."""
        self._files.append(file)
        return len(self._files)

    def get(self, number: int) -> CitedFile | None:
        """Return the file of a result; None for a number that no result has."""
        return self._files[number - 1] if 0 < number <= len(self._files) else None


@dataclass(slots=True)
class CitationReader:
    """Reader of one text that arrives in pieces."""

    files: CitedFiles
    text: str = ""
    """the text so far, without marks"""
    annotations: list[Mapping[str, Any]] = field(default_factory=list)
    _held: str = ""
    """end of what arrived that may be the beginning of a mark"""

    def feed(self, piece: str) -> Iterator[str | Mapping[str, Any]]:
        """Take the next piece; yield pieces of the text without marks, and annotations, in order."""
        arrived = self._held + piece
        end = _end_of_certain(arrived)
        self._held = arrived[end:]
        yield from self._read(arrived[:end])

    def finish(self) -> Iterator[str | Mapping[str, Any]]:
        """Yield what was held back; the text is complete."""
        rest, self._held = self._held, ""
        yield from self._read(rest)

    def _read(self, arrived: str) -> Iterator[str | Mapping[str, Any]]:
        at = 0
        for found in _MARK.finditer(arrived):
            files, unknown = self._cited(found[2])
            if not files:
                continue
            yield from self._said(arrived[at : found.start()])
            # A number that no result has is no citation: it stays what it is, text.
            if unknown:
                yield from self._said(f"{found[1]}{_OPEN}{','.join(unknown)}]")
            for file in files:
                yield from self._annotated(file)
            at = found.end()
        yield from self._said(arrived[at:])

    def _said(self, text: str) -> Iterator[str]:
        if text:
            self.text += text
            yield text

    def _annotated(self, file: CitedFile) -> Iterator[Mapping[str, Any]]:
        annotation = {
            "type": "file_citation",
            "file_id": file.file_id,
            "filename": file.filename,
            "index": len(self.text),
        }
        if annotation not in self.annotations:
            self.annotations.append(annotation)
            yield annotation

    def _cited(self, inside: str) -> tuple[list[CitedFile], Sequence[str]]:
        numbers = [each.strip() for each in inside.split(",") if each.strip()]
        known = [(each, self.files.get(int(each)) if each.isdigit() else None) for each in numbers]
        return [file for _, file in known if file is not None], [each for each, file in known if file is None]


def _end_of_certain(text: str) -> int:
    """Return the position up to which more text cannot change what is a mark."""
    at = text.rfind("[")
    if at < 0 or not _may_begin(text[at:]):
        at = len(text)
    # A blank before a mark goes with it.
    return at - 1 if at and text[at - 1] == " " else at


def _may_begin(text: str) -> bool:
    inside = text[len(_OPEN) :]
    return _OPEN.startswith(text[: len(_OPEN)]) and len(inside) <= _MOST_INSIDE and _INSIDE.issuperset(inside)
