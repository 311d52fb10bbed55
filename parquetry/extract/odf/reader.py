"""OpenDocument texts and presentations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.odf.blocks import OdfStyles, OdfWriter, drawn_order, local, named, paragraph_text
from parquetry.extract.package import Package
from parquetry.extract.page_numbers import without_page_number
from parquetry.extract.properties import odf_properties
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_REPEATED = frozenset({"header", "footer", "date-time", "page-number"})
"""placeholders with the same text on every slide, as in PPTX"""


class OdtExtractor(ListedExtractor):
    """Reads OpenDocument texts (ODT) and presentations (ODP).

    Tables of contents and tracked deletions are left out; notes, comments and the distinct texts of page headers and
    footers follow the text once, as in Word documents.
    """

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one document: a text is one part, a presentation has one part per slide.

        Raises:
            BrokenDocument: `damaged`, `encrypted`, `too-large` or `unsafe-xml`.
        """
        package = Package(document.content, settings.max_unpacked_bytes)
        _refuse_encrypted(package)
        title, metadata = odf_properties(package)
        content = package.xml("content.xml")
        masters = package.xml("styles.xml") if "styles.xml" in package else None
        builder = TextBuilder()
        writer = OdfWriter(builder, OdfStyles([root for root in (masters, content) if root is not None]))
        slides = list(content.iter("{*}page")) if content.find(".//{*}presentation") is not None else []
        if slides:
            _add_slides(builder, writer, slides)
            metadata["slides"] = len(slides)
        else:
            _add_text(builder, writer, content, masters)
        return builder.build(
            title=title or writer.title,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
        )


def _refuse_encrypted(package: Package) -> None:
    manifest = "META-INF/manifest.xml"
    if manifest in package and b"encryption-data" in package.read(manifest):
        raise BrokenDocument("encrypted", "the document is protected with a password")


def _add_text(builder: TextBuilder, writer: OdfWriter, content: Any, masters: Any) -> None:
    body = content.find(".//{*}body/{*}text")
    if body is None:
        raise BrokenDocument("damaged", "content.xml holds no text document")
    writer.write(body)
    writer.write_notes()
    running: dict[str, None] = {}
    for region in masters.iter("{*}header", "{*}footer") if masters is not None else ():
        for paragraph in region.iter("{*}p"):
            running[without_page_number(" ".join(paragraph_text(paragraph).split()))] = None
    builder.text("\n".join(text for text in running if text))


def _add_slides(builder: TextBuilder, writer: OdfWriter, slides: list[Any]) -> None:
    for number, slide in enumerate(slides, start=1):
        notes = [child for child in slide if local(child) == "notes"]
        frames = [child for child in slide if local(child) not in ("notes", "forms", "par", "seq")]
        frames = [frame for frame in frames if named(frame, "class") not in _REPEATED]
        title = next((frame for frame in frames if named(frame, "class") == "title"), None)
        heading = "" if title is None else " ".join(" ".join(map(paragraph_text, title.iter("{*}p"))).split())
        builder.part("slide", number, heading or None)
        builder.heading(1, heading)
        writer.title = writer.title or heading or None
        for frame in drawn_order(frames):
            if frame is not title:
                writer.write(frame)
        said = "\n".join(text for note in notes for p in note.iter("{*}p") if (text := paragraph_text(p).strip()))
        if said:
            builder.text(f"Notes:\n{said}")
        writer.write_notes()
