"""Names of the files attached to a PDF, for a warning. The files are not read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from parquetry.extract.builder import normalise
from parquetry.plural import counted

_LISTED = 5
_COUNTED = 1_000
"""maximum number of attachments that are counted"""
_LONGEST_NAME = 60
"""characters of a name that are shown"""
_LARGEST_NAME = 100_000
"""bytes; an attachment with a longer name counts as unnamed"""
_ANNOTATIONS = 2_000
"""annotations of one page that are inspected"""


def of_document(document: Any) -> Iterator[str]:
    """Yield the names of the files embedded in a `pypdfium2.PdfDocument`, such as a portfolio."""
    from pypdfium2 import raw

    for index in range(min(raw.FPDFDoc_GetAttachmentCount(document), _COUNTED)):
        yield _name(raw.FPDFDoc_GetAttachment(document, index))


def of_page(page: Any) -> Iterator[str]:
    """Yield the names of the files attached to a `pypdfium2.PdfPage` as annotations."""
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
    """Return the name of an attachment; empty if it is damaged."""
    from pypdfium2 import raw

    size = raw.FPDFAttachment_GetName(attachment, None, 0) if attachment else 0
    if not 2 < size <= _LARGEST_NAME:
        return ""
    buffer = ctypes.create_string_buffer(size)
    raw.FPDFAttachment_GetName(attachment, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    name = buffer.raw[:-2].decode("utf-16-le", "ignore")
    if name.startswith("\xfe\xff"):
        # A name in the older entry /F, which the engine decodes as single bytes.
        name = name.encode("latin-1", "ignore").decode("utf-16", "ignore")
    return name


def note(names: Iterable[str]) -> list[str]:
    """Return the warning about a document's attached files; empty if it has none.

    Args:
        names: names as stored in the file; a name that occurs twice counts once.
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
