"""Plain text, in any encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.layout import Line
from parquetry.extract.pdf.running_heads import without_running_heads
from parquetry.extract.terminal import as_shown
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_ROW = 12.0
"""points from one row of a printed page to the next"""
_FREE_PAGES = 10_000
_LEAST_ON_PAGE = 100
"""average characters per page, above `_FREE_PAGES` pages, below which form feeds do not separate printed pages"""


class PlainTextExtractor(ListedExtractor):
    """Reads plain text: notes, READMEs, output of terminals, and text laid out in pages for a printer."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        builder = TextBuilder("text")
        if builder.text(_without_running_heads(as_shown(text))) is None:
            raise SkippedDocument("no-text", "the file holds only white space")
        return builder.build(
            title=None,
            metadata={"encoding": encoding},
            media_type=media_type,
            extractor=self.id,
            warnings=replaced(document.content, text, encoding),
        )


def _without_running_heads(text: str) -> str:
    """Remove the lines that pages, separated by form feeds, repeat at their edges."""
    breaks = text.count("\f")
    if not breaks or breaks > _FREE_PAGES + len(text) // _LEAST_ON_PAGE:
        return text
    pages = [page.split("\n") for page in text.replace("\r\n", "\n").rstrip("\f\n ").split("\f")]
    # Every row has the same height, so that an empty one is a gap.
    kept = without_running_heads(
        [
            [
                Line(line, 0.0, len(line), -_ROW * (row + 1), -_ROW * row, _ROW)
                for row, line in enumerate(lines)
                if line.strip()
            ]
            for lines in pages
        ]
    )
    for lines, left in zip(pages, kept, strict=True):
        staying = {round(line.top / -_ROW): line.text for line in left}
        lines[:] = [staying.get(row, "") for row in range(len(lines))]
    return "\n".join("\n".join(lines) for lines in pages)
