"""PowerPoint presentations: each slide with its title, shapes in reading order, tables, charts and notes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.package import Package, not_well_formed, parse_xml
from parquetry.extract.properties import core_properties
from parquetry.extract.shapes import SlideWriter, paragraph_lines
from parquetry.model import Extraction, RawDocument
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_PRESENTATION = b"presentationml.presentation.main+xml"
_OTHER_KINDS = (b"presentationml.slideshow.main+xml", b"presentationml.template.main+xml")
_CONTENT_TYPES = "[Content_Types].xml"


class PptxExtractor(ListedExtractor):
    """Reads PowerPoint presentations, shows and templates."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one presentation: one part per slide, including hidden ones.

        Raises:
            BrokenDocument: `damaged`, `encrypted`, `too-large` or `unsafe-xml`.
        """
        package = Package(document.content, settings.max_unpacked_bytes)
        package.check()
        title, metadata = core_properties(package)
        builder = TextBuilder()
        warnings: list[str] = []
        slides = 0
        first_title = None
        drawn: set[str] = set()
        for number, slide in _slides(package, document.content, warnings):
            slide_title = _add_slide(builder, slide, number, warnings, drawn)
            _add_remarks(builder, slide, number, warnings)
            if slide._element.get("show") == "0":
                warnings.append(f"slide {number} is hidden; its text is indexed")
            first_title = first_title or slide_title
            slides += 1
        metadata["slides"] = slides
        return builder.build(
            title=title or first_title,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )


def _slides(package: Package, content: bytes, warnings: list[str]) -> list[tuple[int, Any]]:
    """Return 1-based numbers and slides in presentation order."""
    from lxml import etree

    types = package.read(_CONTENT_TYPES)
    if any(kind in types for kind in _OTHER_KINDS):
        for kind in _OTHER_KINDS:
            types = types.replace(kind, _PRESENTATION)
        content = package.repack({_CONTENT_TYPES: types})
    try:
        return list(_listed(content, warnings))
    except etree.XMLSyntaxError as error:
        raise not_well_formed("a part of the presentation", error) from error
    except _malformed() as error:
        raise BrokenDocument("damaged", f"the presentation cannot be opened: {error!r}") from error


def _malformed() -> tuple[type[Exception], ...]:
    """Return the exceptions that python-pptx raises on malformed input, which it accesses without checks."""
    from pptx.exc import PythonPptxError

    return PythonPptxError, KeyError, ValueError, AttributeError, IndexError, TypeError


def _listed(content: bytes, warnings: list[str]) -> Iterator[tuple[int, Any]]:
    from pptx import Presentation

    presentation: Any = Presentation(io.BytesIO(content))
    # presentation.slides fails entirely if the part of one slide is missing.
    listed = presentation._element.sldIdLst
    seen: set[str] = set()
    again = 0
    for number, entry in enumerate(() if listed is None else listed, start=1):
        try:
            part = presentation.part.related_part(entry.rId)
        except KeyError:
            warnings.append(f"slide {number} is listed but missing from the file")
            continue
        if part.partname in seen:
            again += 1
        elif hasattr(part, "slide"):
            yield number, part.slide
        seen.add(part.partname)
    if again:
        warnings.append(f"{counted(again, 'slide is', 'slides are')} listed once more and read once")


def _add_slide(builder: TextBuilder, slide: Any, number: int, warnings: list[str], drawn: set[str]) -> str | None:
    """Add the visible content of a slide; return its title."""
    try:
        writer = SlideWriter(builder, slide, drawn)
        builder.part("slide", number, writer.title)
        writer.write()
    except _malformed() as error:
        warnings.append(f"slide {number} is malformed, its words are indexed without their order: {error!r}")
        builder.part("slide", number)
        builder.text("\n".join(paragraph_lines(slide._element, is_list=False)))
        return None
    warnings.extend(f"slide {number}: {warning}" for warning in writer.warnings)
    return writer.title


def _add_remarks(builder: TextBuilder, slide: Any, number: int, warnings: list[str]) -> None:
    """Add speaker notes and reviewers' comments, which are attached to a slide but not shown on it."""
    notes: list[str] = []
    comments: list[str] = []
    for relation in slide.part.rels.values():
        if relation.is_external:
            continue
        kind = relation.reltype.rpartition("/")[2]
        try:
            if kind == "notesSlide":
                notes.append(_notes_text(relation.target_part.notes_slide))
            elif kind == "comments":
                root = parse_xml(relation.target_part.blob, str(relation.target_part.partname))
                texts = root.xpath("//*[local-name()='cm']/*[local-name()='text'] | //*[local-name()='txBody']")
                comments.extend(" ".join("".join(text.itertext()).split()) for text in texts)
        except _malformed() as error:
            warnings.append(f"slide {number} has notes or comments that are malformed and left out: {error!r}")
    for text in filter(None, notes):
        builder.text(f"Notes:\n{text}")
    if any(comments):
        builder.text("Comments:\n" + "\n".join(f"- {comment}" for comment in comments if comment))


def _notes_text(notes: Any) -> str:
    frame = notes.notes_text_frame
    if frame is None:
        return ""
    return "\n".join(paragraph.text.replace("\v", "\n") for paragraph in frame.paragraphs).strip()
