"""Facts about how completely a document was read, gathered when its text is finished."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from parquetry.model import Part, Quality

COUNTED = ("page", "slide")
"""kinds of parts that are opened even if there is no text on them, so that their number is known"""
_NO_MEANING = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd]")
"""the replacement character, and characters for private use, which only their font gives a meaning"""


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Facts about the pages of a document that its text does not show; None for what is not known."""

    pages: int | None = None
    """pages of the file; None for as many as were opened"""
    all_seen: bool = True
    """False if there may be further pages"""
    unread: Sequence[int] | None = None
    """1-based numbers of the pages that show something of which not everything could be read"""
    ocr: Mapping[int, float] | None = None
    """1-based number of each page read by OCR -> confidence, 0 to 1"""
    unmapped: int | None = 0
    """glyphs that have no character"""
    tables: int | None = None
    """tables besides those that were added as rows"""


def quality_of(
    text: str, parts: Sequence[Part], opened: int | None, facts: PageFacts, *, tables: int | None, cut: int
) -> Quality:
    """Return the quality of a finished text.

    Args:
        text: the normalised text.
        parts: its parts.
        opened: number of pages or slides that were opened; None if it is not known, or if the format has none.
        facts: facts that the extractor has learnt.
        tables: number of tables; None if the extractor does not look for any.
        cut: characters left out.
    """
    pages = opened if facts.pages is None else facts.pages
    if not facts.all_seen:
        pages = None
    sizes: Counter[int] = Counter()
    for part in parts:
        sizes[part.number] += part.end - part.start
    each = None if pages is None else [sizes[number] for number in range(1, pages + 1)]
    ocr = None if facts.ocr is None else tuple(sorted(facts.ocr.items()))
    read = sum(sizes[number] for number, _ in ocr or ())
    certain = sum(confidence * sizes[number] for number, confidence in ocr or ())
    return Quality(
        pages=pages,
        without_text=None if each is None else tuple(number for number, size in enumerate(each, 1) if not size),
        unread=None if facts.unread is None else tuple(sorted(set(facts.unread))),
        least=min(each) if each else None,
        median=median(each) if each else None,
        ocr=None if ocr is None else tuple((number, round(confidence, 3)) for number, confidence in ocr),
        ocr_confidence=round(certain / read, 3) if read else None,
        unmapped=None if facts.unmapped is None else facts.unmapped + _without_meaning(text),
        tables=tables if facts.tables is None else facts.tables + (tables or 0),
        cut=cut,
    )


def _without_meaning(text: str) -> int:
    return 0 if text.isascii() else len(_NO_MEANING.findall(text))
