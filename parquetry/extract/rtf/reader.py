"""Rich texts (RTF)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.page_numbers import without_page_number
from parquetry.extract.rtf.parser import parse_rtf
from parquetry.extract.rtf.stories import RichText, write_blocks
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings


class RtfExtractor(ListedExtractor):
    """Reads rich texts; notes, comments and the distinct texts of page headers and footers follow the text once."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        """Extract one document as a single part.

        Raises:
            BrokenDocument: `damaged` or `too-deep`.
        """
        found = parse_rtf(document.content)
        builder = TextBuilder()
        first = add_rich_text(builder, found)
        properties = dict(found.properties)
        title = properties.pop("title", None)
        return builder.build(
            title=title or first,
            metadata=properties,
            media_type=media_type,
            extractor=self.id,
            warnings=() if found.whole else ("the file ends early; the text up to there is read",),
        )


def add_rich_text(builder: TextBuilder, found: RichText) -> str | None:
    """Add a parsed rich text to a builder.

    Returns:
        The first heading of level 1.
    """
    first = write_blocks(builder, found.body.blocks)
    builder.text("\n".join(found.notes))
    if found.comments:
        builder.text("Comments:\n" + "\n".join(f"- {comment}" for comment in found.comments))
    running = (without_page_number(text) for text in found.running)
    builder.text("\n".join(text for text in running if text))
    return first
