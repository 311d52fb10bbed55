"""Known losses of a document, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parquetry.plural import counted


def losses_of(quality: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is known to be missing or doubtful of a document, each in words.

    Args:
        quality: facts on how completely it was read, as in the view `quality`.
    """
    pages, unread, by_ocr = quality["pages"], quality["pages_unread"], quality["pages_ocr"]
    if unread:
        yield f"{unread} of {counted(pages, 'page')} not fully read"
    if by_ocr and quality["ocr_confidence"] is not None:
        yield f"{counted(by_ocr, 'page')} by OCR, confidence {quality['ocr_confidence']:.2f}"
    if quality["unmapped"]:
        yield f"{counted(quality['unmapped'], 'character')} unmapped ({share_of(quality['unmapped_share'])})"
    if quality["cut"]:
        yield f"{counted(quality['cut'], 'character')} cut"


def share_of(share: float) -> str:
    """Return a share of 0 to 1 in percent."""
    return "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
