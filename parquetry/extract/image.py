"""Pictures: the text read by OCR, and a model's description."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract import ocr
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.layout import join_divided, paragraphs, words_of
from parquetry.extract.media_types import GIF, JPEG, PNG, WEBP
from parquetry.model import Extraction, RawDocument, Scalar
from parquetry.settings.sections import ExtractionSettings

MAX_PIXELS = 100_000_000
"""pixels above which a picture is refused before it is unpacked; at the limit it takes 300 MB of memory"""
MAX_SIDE = 250_000
"""pixels; long pictures are read in sections, each of which takes as long as a page"""

_FORMATS = {PNG: "PNG", JPEG: "JPEG", WEBP: "WEBP", GIF: "GIF"}
_DESCRIPTION, _MAKE, _MODEL, _ARTIST = 0x010E, 0x010F, 0x0110, 0x013B
_EXIF_PART, _TAKEN = 0x8769, 0x9003
_VALUE_CHARACTERS = 500
_BRIGHT = 150
"""brightness, 0 to 255, of writing on a transparent background above which the background becomes black"""
_EXIF_DATE = re.compile(r"(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)")
_NAME = "image"
_VERSION = 1
_PILLOW_ERRORS = (
    OSError, SyntaxError, ValueError, EOFError, struct.error, IndexError, KeyError, TypeError, OverflowError,
)  # fmt: skip
"""exceptions that Pillow raises on damaged input"""


class ImageExtractor:
    """Reads text in PNG, JPEG, WebP and GIF pictures; in an animated one, from its first frame."""

    name = _NAME
    version = _VERSION
    media_types = frozenset(_FORMATS)
    settings_used: frozenset[str] = frozenset({"ocr", "include_image_descriptions"})

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one picture; `with_description` adds its description if one is wanted.

        Raises:
            SkippedDocument: `no-text`: the picture has no readable text, or OCR is off or not installed.
            BrokenDocument: `damaged`, or `too-many-pixels`.
        """
        picture, title, metadata = _open(document.content, media_type)
        if not settings.ocr:
            raise SkippedDocument("no-text", "it is a picture; set extraction.ocr = true to read the text in it")
        if not ocr.available():
            raise SkippedDocument("no-text", "it is a picture; to read the text in it: pip install 'parquetry[ocr]'")
        text = paragraphs(ocr.as_text_lines(ocr.read(picture)))
        builder = TextBuilder("text")
        builder.text(join_divided(text, words_of([text])))
        extraction = builder.build(
            title=title, metadata=metadata, media_type=media_type, extractor=f"{_NAME}/{_VERSION}", warnings=()
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "no text can be read in this picture")
        return extraction


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
    return builder.build(
        title=extraction.title if extraction else None,
        metadata={**(extraction.metadata if extraction else {}), "described": True},
        media_type=media_type,
        extractor=extraction.extractor if extraction else f"{_NAME}/{_VERSION}",
        warnings=extraction.warnings if extraction else (),
    )


def _open(content: bytes, media_type: str) -> tuple[Any, str | None, dict[str, Scalar]]:
    """Return the picture upright on a plain background, its title, and its metadata."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    with warnings.catch_warnings():
        # Damaged EXIF data is no reason to refuse a picture or to write to stderr; a decompression bomb is refused.
        warnings.simplefilter("ignore")
        # Pillow warns above this limit and refuses twice as many pixels, for every frame before allocating its memory.
        Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2
        try:
            picture = Image.open(BytesIO(content), formats=[_FORMATS[media_type]])
            if max(picture.size) > MAX_SIDE:
                raise BrokenDocument(
                    "too-many-pixels", f"a side of {max(picture.size)} pixels is longer than {MAX_SIDE:,}"
                )
            title, metadata = _about(picture)
            picture.load()
            upright = ImageOps.exif_transpose(picture)
        except Image.DecompressionBombError as error:
            raise BrokenDocument("too-many-pixels", f"it has more than {MAX_PIXELS:,} pixels") from error
        except UnidentifiedImageError as error:
            raise BrokenDocument("damaged", f"it is no {_FORMATS[media_type]} picture") from error
        except _PILLOW_ERRORS as error:
            raise BrokenDocument("damaged", f"it cannot be opened as a picture: {error}") from error
        return _on_plain_ground(upright), title, {"width": upright.width, "height": upright.height, **metadata}


def _about(picture: Any) -> tuple[str | None, dict[str, Scalar]]:
    """Return the title and the metadata, without places: a GPS position may reveal a home."""
    try:
        exif = picture.getexif()
        taken = exif.get_ifd(_EXIF_PART).get(_TAKEN)
    except _PILLOW_ERRORS:
        exif, taken = {}, None
    info: Mapping[Any, Any] = picture.info
    camera = " ".join(filter(None, (_clean(exif.get(_MAKE)), _clean(exif.get(_MODEL)))))
    date = _EXIF_DATE.match(_clean(taken))
    frames = getattr(picture, "n_frames", 1)
    metadata: dict[str, Scalar] = {
        "camera": camera,
        "created": f"{date[1]}-{date[2]}-{date[3]}T{date[4]}" if date else "",
        "author": _clean(exif.get(_ARTIST)) or _clean(info.get("Author")),
        "description": _clean(exif.get(_DESCRIPTION)) or _clean(info.get("Description")),
    }
    if frames > 1:
        metadata["frames"] = frames
    return _clean(info.get("Title")) or None, metadata


def _clean(value: object) -> str:
    """Return a metadata value as one line; empty for anything but text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return ""
    return " ".join(normalise(value.split("\x00")[0]).split())[:_VALUE_CHARACTERS]


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
