"""Files attached to a PDF: their names, for a note. They are not read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from parquetry.extract.builder import normalise
from parquetry.plural import counted

_LISTED = 5
_COUNTED = 1_000
"""a document with more is not worth counting"""
_LONGEST_NAME = 60
"""characters"""
_LARGEST_NAME = 100_000
"""bytes"""
_ANNOTATIONS = 2_000
"""of one page that are looked at"""


def of_document(document: Any) -> Iterator[str]:
    """Names of the files that a `pypdfium2.PdfDocument` has embedded, as a portfolio has."""
    from pypdfium2 import raw

    for index in range(min(raw.FPDFDoc_GetAttachmentCount(document), _COUNTED)):
        yield _name(raw.FPDFDoc_GetAttachment(document, index))


def of_page(page: Any) -> Iterator[str]:
    """Names of the files that hang on a `pypdfium2.PdfPage` as annotations."""
    from pypdfium2 import raw

    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            if raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_FILEATTACHMENT:
                yield _name(raw.FPDFAnnot_GetFileAttachment(annotation))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _name(attachment: Any) -> str:
    """The name of an attachment; empty for one that is damaged."""
    from pypdfium2 import raw

    size = raw.FPDFAttachment_GetName(attachment, None, 0) if attachment else 0
    if not 2 < size <= _LARGEST_NAME:
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAttachment_GetName(attachment, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    name = buffer.raw[:-2].decode("utf-16-le", "ignore")
    if name.startswith("\xfe\xff"):
        # A name in the older entry /F, which the engine takes for single bytes.
        name = name.encode("latin-1", "ignore").decode("utf-16", "ignore")
    return name


def note(names: Iterable[str]) -> list[str]:
    """The note on a document that has such files; none for one that has not.

    Args:
        names: as the file gives them; one that is given twice is one file.
    """
    different = dict.fromkeys(_shown(name) for name in islice(names, _COUNTED))
    if not different:
        return []
    count = counted(len(different), "attached file is", "attached files are")
    more = f" and {len(different) - _LISTED} more" if len(different) > _LISTED else ""
    return [f"{count} not read: {', '.join(list(different)[:_LISTED])}{more}"]


def _shown(name: str) -> str:
    name = " ".join(normalise(name[: 4 * _LONGEST_NAME]).split()) or "without a name"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
