"""Word documents: headings, lists, tables and notes, from mammoth's HTML."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from xml.parsers.expat import ExpatError

from parquetry.errors import BrokenDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.docx.parts import WordParts
from parquetry.extract.docx.simplify import HEADING_STYLE, Simplifier
from parquetry.extract.html.reader import add_html
from parquetry.extract.package import Package
from parquetry.extract.properties import core_properties
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_STYLE_MAP = "\n".join(f"p.{HEADING_STYLE}{level} => h{level}:fresh" for level in range(1, 7))


class DocxExtractor(ListedExtractor):
    """Reads Word documents and templates.

    Tables of contents are left out: they repeat every heading and would be found instead of it. Footnotes, comments and
    the distinct texts of page headers and footers follow the text once; headers often hold the only mention of a
    document's number or version.
    """

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one document as a single part: it has no pages until it is printed.

        Raises:
            BrokenDocument: `damaged`, `encrypted`, `too-large`, `too-deep` or `unsafe-xml`.
        """
        package = Package(document.content, settings.max_unpacked_bytes)
        title, metadata = core_properties(package)
        parts = WordParts(package)
        simplifier = Simplifier(parts)
        builder = TextBuilder()
        add_html(builder, _as_html(simplifier.simplify()), main_only=False)
        pages, unread = parts.html_chunks()
        for page in pages:
            add_html(builder, page, main_only=False)
        builder.text("\n".join(simplifier.notes))
        if comments := parts.comments():
            builder.text("Comments:\n" + "\n".join(f"- {comment}" for comment in comments))
        builder.text("\n".join(parts.running_heads()))
        warnings = [f"{unread} embedded document(s) in another format were not read"] if unread else []
        return builder.build(
            title=title or simplifier.title or simplifier.first_heading,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )


def _as_html(content: bytes) -> str:
    import mammoth

    try:
        converted = mammoth.convert_to_html(
            io.BytesIO(content),
            style_map=_STYLE_MAP,
            include_embedded_style_map=False,
            external_file_access=False,
        )
    except RecursionError as error:
        raise BrokenDocument("too-deep", "its tables or text boxes are nested too deeply to be read") from error
    # mammoth resolves references by plain indexing: a dangling one raises any of these.
    except (KeyError, IndexError, ValueError, AttributeError, TypeError, OSError, ExpatError) as error:
        raise BrokenDocument("damaged", f"the Word document cannot be read: {error!r}") from error
    return str(converted.value)
