"""Pictures: the text read by OCR, and a model's description."""

from __future__ import annotations

import importlib.util
import re
import struct
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract import ocr
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.layout import Line, join_divided, paragraphs, words_of
from parquetry.extract.media_types import DESCRIBED_PICTURES, GIF, HEIC, JPEG, PNG, TIFF, WEBP
from parquetry.extract.pdf.running_heads import without_running_heads
from parquetry.extract.quality import PageFacts
from parquetry.model import Extraction, Quality, RawDocument, Scalar
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

MAX_PIXELS = 100_000_000
"""pixels above which a picture is refused before it is unpacked; at the limit it takes 300 MB of memory"""
MAX_SIDE = 250_000
"""pixels; long pictures are read in sections, each of which takes as long as a page"""

MAX_PAGES = 2000
"""pages of a TIFF; Pillow searches a list of all earlier ones for each"""

_FORMATS = {PNG: "PNG", JPEG: "JPEG", WEBP: "WEBP", GIF: "GIF", TIFF: "TIFF", HEIC: "HEIF"}
_SUBFILE, _NAME_OF_DOCUMENT = 0x00FE, 0x010D
_NO_PAGE = 0b101
"""bits of a picture's kind in a TIFF: a smaller copy of another, and a mask"""
_DESCRIPTION, _MAKE, _MODEL, _ARTIST = 0x010E, 0x010F, 0x0110, 0x013B
_EXIF_PART, _TAKEN = 0x8769, 0x9003
_VALUE_CHARACTERS = 500
_BRIGHT = 150
"""brightness, 0 to 255, of writing on a transparent background above which the background becomes black"""
_EXIF_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")
_NAME = "image"
_VERSION = 2
_PILLOW_ERRORS = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, IndexError, KeyError, TypeError, OverflowError,
)  # fmt: skip
"""exceptions that Pillow raises on damaged input"""


@cache
def heic_available() -> bool:
    """Return True if the `heic` extra is installed."""
    return importlib.util.find_spec("pi_heif") is not None


class ImageExtractor(ListedExtractor):
    """Reads text in PNG, JPEG, WebP, GIF, TIFF and HEIC pictures; in an animated one, from its first frame."""

    name = _NAME
    version = _VERSION

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one picture, or the pages of a TIFF; `with_description` adds its description if one is wanted.

        Raises:
            SkippedDocument: `no-text`: the picture has no readable text, or OCR is off or not installed.
            BrokenDocument: `damaged`, or `too-many-pixels`.
        """
        deadline = time.monotonic() + ocr.TIME_SHARE * settings.timeout_seconds
        picture, title, metadata = _open(document.content, media_type)
        first = _page(picture, media_type)
        metadata = {"width": first.width, "height": first.height, **metadata}
        if not settings.ocr:
            raise SkippedDocument("no-text", "it is a picture; set extraction.ocr = true to read the text in it")
        if not ocr.available():
            raise SkippedDocument("no-text", "it is a picture; to read the text in it: pip install 'parquetry[ocr]'")
        reading = _Reading()
        reading.add(first)
        if media_type == TIFF:
            _read_further_pages(picture, deadline, reading)
        if len(reading.pages) > 1:
            metadata["pages"] = len(reading.pages)
            reading.pages = without_running_heads(reading.pages, [title or ""])
        if reading.unread:
            late = f"the last {counted(reading.unread, 'page was', 'pages were')} not read"
            reading.warnings.append(f"{late}: there was no time; raise extraction.timeout_seconds")
        if settings.include_image_descriptions and media_type not in DESCRIBED_PICTURES:
            reading.warnings.append("not described: models take PNG, JPEG, WebP and GIF")
        builder = TextBuilder("text")
        _add_pages(builder, reading.pages)
        extraction = builder.build(
            title=title, metadata=metadata, media_type=media_type, extractor=f"{_NAME}/{_VERSION}",
            warnings=reading.warnings, pages=reading.facts(),
        )  # fmt: skip
        if not extraction.text:
            unread = f": {reading.warnings[0]}" if reading.warnings else ""
            raise SkippedDocument("no-text", f"no text can be read in this picture{unread}")
        return extraction


@dataclass(slots=True)
class _Reading:
    """The pages read so far."""

    pages: list[list[Line]] = field(default_factory=list)
    unread: int = 0
    """pages at the end for which there was no time"""
    damaged: list[int] = field(default_factory=list)
    """1-based numbers of pages that cannot be read"""
    recognised: dict[int, float] = field(default_factory=dict)
    """1-based number of each page with text -> confidence, 0 to 1"""
    all_seen: bool = True
    """False if pages after the last one were not looked at"""
    warnings: list[str] = field(default_factory=list)

    def add(self, page: Any) -> None:
        """Read a page."""
        read = ocr.read(page)
        self.pages.append(ocr.as_text_lines(read))
        confidence = ocr.confidence_of(read)
        if confidence is not None:
            self.recognised[len(self.pages)] = confidence

    def facts(self) -> PageFacts:
        """Return the facts about the pages."""
        late = range(len(self.pages) - self.unread + 1, len(self.pages) + 1)
        unread = [*self.damaged, *late] if self.all_seen else None
        return PageFacts(len(self.pages), all_seen=self.all_seen, unread=unread, ocr=self.recognised)


def _read_further_pages(picture: Any, deadline: float, reading: _Reading) -> None:
    """Read the pages of a TIFF after the first.

    Args:
        picture: the open TIFF.
        deadline: time on the monotonic clock from which no further page is read.
        reading: receives the pages; one that cannot be read is empty and has a warning.
    """
    for frame in range(1, MAX_PAGES + 1):
        number = len(reading.pages) + 1
        try:
            if not _turn_to(picture, frame):
                return
        except BrokenDocument as error:
            if error.reason != "damaged":
                raise
            reading.warnings.append(f"page {number} and those after it are damaged")
            reading.all_seen = False
            return
        if frame == MAX_PAGES:
            break
        if _subfile(picture) & _NO_PAGE:
            continue
        if time.monotonic() > deadline:
            reading.pages.append([])
            reading.unread += 1
            continue
        try:
            reading.add(_page(picture, TIFF))
        except BrokenDocument as error:
            if error.reason != "damaged":
                raise
            reading.pages.append([])
            reading.damaged.append(number)
            reading.warnings.append(f"page {number} is damaged")
    reading.all_seen = False
    reading.warnings.append(f"pages after {len(reading.pages)} were not read: more than {MAX_PAGES} pictures")


def _turn_to(picture: Any, frame: int) -> bool:
    """Go to a picture of a TIFF; return False if there is none."""
    with _refusals(TIFF):
        try:
            picture.seek(frame)
        except EOFError:
            return False
    return True


def _subfile(picture: Any) -> int:
    kind = picture.tag_v2.get(_SUBFILE, 0)
    return kind if isinstance(kind, int) else 0


def _add_pages(builder: TextBuilder, pages: list[list[Line]]) -> None:
    raw = [paragraphs(lines) for lines in pages]
    words = words_of(raw)
    for number, text in enumerate(raw, start=1):
        if len(pages) > 1:
            builder.part("page", number, format="text")
        builder.text(join_divided(text, words))


def with_description(extraction: Extraction | None, description: str, media_type: str) -> Extraction:
    """Return the picture's text with its description as the first paragraph.

    Args:
        extraction: result of `ImageExtractor`; None if it found no text.
        description: a model's description of the picture.
        media_type: media type of the picture.
    """
    builder = TextBuilder("text")
    builder.text(description)
    if extraction:
        builder.text(extraction.text)
    described = builder.build(
        title=extraction.title if extraction else None,
        metadata={**(extraction.metadata if extraction else {}), "described": True},
        media_type=media_type,
        extractor=extraction.extractor if extraction else f"{_NAME}/{_VERSION}",
        warnings=extraction.warnings if extraction else (),
    )
    # What the model says of the picture tells nothing about how well its text was read.
    return replace(described, quality=extraction.quality if extraction else Quality(pages=1))


def _open(content: bytes, media_type: str) -> tuple[Any, str | None, dict[str, Scalar]]:
    """Return the open picture, its title, and its metadata."""
    from PIL import Image

    if media_type == HEIC:
        from pi_heif import register_heif_opener

        register_heif_opener(thumbnails=False)
    with _refusals(media_type):
        picture = Image.open(BytesIO(content), formats=[_FORMATS[media_type]])
        _check_sides(picture)
        title, metadata = _about(picture, media_type)
        return picture, title, metadata


def shown_picture(content: bytes, media_type: str) -> Any:
    """Return a picture, upright on a plain background; of several pages or frames, the first.

    Raises:
        BrokenDocument: `damaged`, or `too-many-pixels`.
    """
    if media_type not in _FORMATS:
        raise BrokenDocument("damaged", "it is no picture")
    return _page(_open(content, media_type)[0], media_type).convert("RGB")


def _check_sides(picture: Any) -> None:
    if max(picture.size) > MAX_SIDE:
        raise BrokenDocument("too-many-pixels", f"a side of {max(picture.size)} pixels is longer than {MAX_SIDE:,}")


def _page(picture: Any, media_type: str) -> Any:
    """Return the current page of a picture upright on a plain background."""
    from PIL import ImageOps

    with _refusals(media_type):
        _check_sides(picture)
        picture.load()
        return _on_plain_ground(_with_8_bits(ImageOps.exif_transpose(picture)))


@contextmanager
def _refusals(media_type: str) -> Iterator[None]:
    """Translate the exceptions of Pillow."""
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        # Damaged EXIF data is no reason to refuse a picture or to write to stderr; a decompression bomb is refused.
        warnings.simplefilter("ignore")
        # Pillow warns above this limit and refuses twice as many pixels, for every frame before allocating its memory.
        Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2
        try:
            yield
        except Image.DecompressionBombError as error:
            raise BrokenDocument("too-many-pixels", f"it has more than {MAX_PIXELS:,} pixels") from error
        except UnidentifiedImageError as error:
            raise BrokenDocument("damaged", f"it is no {_FORMATS[media_type]} picture") from error
        except _PILLOW_ERRORS as error:
            raise BrokenDocument("damaged", f"it cannot be opened as a picture: {error}") from error


def _about(picture: Any, media_type: str) -> tuple[str | None, dict[str, Scalar]]:
    """Return the title and the metadata, without places: a GPS position may reveal a home."""
    try:
        exif = picture.getexif()
        taken = exif.get_ifd(_EXIF_PART).get(_TAKEN)
    except _PILLOW_ERRORS:
        exif, taken = {}, None
    info: Mapping[Any, Any] = picture.info
    camera = " ".join(filter(None, (_clean(exif.get(_MAKE)), _clean(exif.get(_MODEL)))))
    date = _EXIF_DATE.match(_clean(taken))
    # The pages of a TIFF are counted as they are read.
    frames = getattr(picture, "n_frames", 1) if media_type != TIFF else 1
    metadata: dict[str, Scalar] = {
        "camera": camera,
        "created": f"{date[1]}-{date[2]}-{date[3]}T{date[4]}" if date else "",
        "author": _clean(exif.get(_ARTIST)) or _clean(info.get("Author")),
        "description": _clean(exif.get(_DESCRIPTION)) or _clean(info.get("Description")),
    }
    if frames > 1:
        metadata["frames"] = frames
    return _clean(info.get("Title")) or _clean(exif.get(_NAME_OF_DOCUMENT)) or None, metadata


def _clean(value: object) -> str:
    """Return a metadata value as one line; empty for anything but text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return ""
    return " ".join(normalise(value.split("\x00")[0]).split())[:_VALUE_CHARACTERS]


def _with_8_bits(picture: Any) -> Any:
    """Spread the values of a picture with more than 8 bits over 8: Pillow would cut off what is above."""
    if not picture.mode.startswith(("I", "F")):
        return picture
    picture = picture.convert("F")
    low, high = picture.getextrema()
    scale = 255 / (high - low) if high > low else 1.0
    return picture.point(lambda value: value * scale - low * scale).convert("L")


def _on_plain_ground(picture: Any) -> Any:
    """Convert to RGB; transparent areas become white, or black under light writing."""
    from PIL import Image, ImageStat

    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture.convert("RGB")
    picture = picture.convert("RGBA")
    opaque = picture.getchannel("A").point(lambda alpha: 255 if alpha > 127 else 0)
    if opaque.getbbox() is None:
        return Image.new("RGB", picture.size, "white")
    brightness = ImageStat.Stat(picture.convert("L"), mask=opaque).mean[0]
    ground = Image.new("RGBA", picture.size, "black" if brightness > _BRIGHT else "white")
    ground.alpha_composite(picture)
    return ground.convert("RGB")
