"""Images: text, metadata and hostile files."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract.image import ImageExtractor, with_description
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


def drawn(text: str, ground: Any = "white", ink: Any = "black", mode: str = "RGB") -> Image.Image:
    image = Image.new(mode, (320, 60), ground)
    ImageDraw.Draw(image).text((16, 14), text, fill=ink, font=ImageFont.load_default(26))
    return image


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def extract(content: bytes, media_type: str = "image/png", **settings: Any) -> Extraction:
    chosen = ExtractionSettings.model_validate(settings)
    return ImageExtractor().extract(RawDocument(content, "picture"), media_type, chosen)


def refused(content: bytes, media_type: str = "image/png", **settings: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        extract(content, media_type, **settings)
    return caught.value


def huge_png(side: int) -> bytes:
    """A PNG of a few bytes that declares very many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", TYPES)
def test_text_in_every_format_is_read(kind: str):
    extraction = extract(saved(drawn("Berth number 42"), kind), TYPES[kind])
    assert extraction.text == "Berth number 42"
    assert [(p.start, p.end, p.kind, p.format) for p in extraction.parts] == [(0, 15, "document", "text")]
    assert (extraction.metadata["width"], extraction.metadata["height"]) == (320, 60)


@pytest.mark.parametrize("ink", ["black", "white"])
def test_writing_on_a_transparent_ground_is_read_in_either_ink(ink: str):
    assert extract(saved(drawn("Berth number 42", (0, 0, 0, 0), ink, "RGBA"))).text == "Berth number 42"


def test_camera_date_and_orientation_are_taken_and_the_place_is_not():
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated; displayed a quarter turn clockwise
    exif[0x010F], exif[0x0110], exif[0x010E] = "Nikon\0junk", "D7", "Crane 7\nat noon"
    exif.get_ifd(0x8769)[0x9003] = "2024:02:29 08:15:30"
    exif.get_ifd(0x8825)[2] = (63.0, 25.0, 0.0)
    turned = drawn("Berth number 42").transpose(Image.Transpose.ROTATE_90)
    extraction = extract(saved(turned, "JPEG", exif=exif, quality=95), "image/jpeg")
    assert extraction.text == "Berth number 42"
    assert extraction.metadata == {
        "width": 320,
        "height": 60,
        "camera": "Nikon D7",
        "created": "2024-02-29T08:15:30",
        "description": "Crane 7 at noon",
    }


def test_title_and_author_of_a_png_are_taken():
    info = PngImagePlugin.PngInfo()
    info.add_text("Title", "Plan of the quay")
    info.add_text("Author", "Åse Lund")
    extraction = extract(saved(drawn("Berth number 42"), pnginfo=info))
    assert (extraction.title, extraction.metadata["author"]) == ("Plan of the quay", "Åse Lund")


def test_damaged_exif_data_does_not_harm():
    content = saved(drawn("Berth number 42"), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 40)
    assert extract(content, "image/jpeg").text == "Berth number 42"


def test_a_moving_picture_tells_its_number_of_frames():
    frames = [drawn("Berth number 42"), drawn("Berth number 43"), drawn("Berth number 44")]
    extraction = extract(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]), "image/gif")
    assert (extraction.text, extraction.metadata["frames"]) == ("Berth number 42", 3)


def test_a_picture_without_text_is_skipped():
    error = refused(saved(Image.new("RGB", (40, 40), "blue")))
    assert isinstance(error, SkippedDocument)
    assert str(error) == "no-text: no text can be read in this picture"


def test_with_ocr_off_or_missing_a_picture_is_skipped_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    content = saved(drawn("Berth number 42"))
    assert "extraction.ocr = true" in str(refused(content, ocr=False))
    monkeypatch.setattr("parquetry.extract.ocr.available", lambda: False)
    assert "pip install 'parquetry[ocr]'" in str(refused(content))


def test_a_bomb_is_broken_before_it_is_unpacked():
    error = refused(huge_png(60_000))
    assert isinstance(error, BrokenDocument)
    assert str(error) == "too-many-pixels: it has more than 100,000,000 pixels"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_picture_cut_short_is_broken_as_damaged(kind: str, share: float):
    whole = saved(Image.effect_noise((200, 200), 90).convert("RGB"), kind)
    error = refused(whole[: int(len(whole) * share)], TYPES[kind], ocr=False)
    assert isinstance(error, BrokenDocument)
    assert error.reason == "damaged"


def test_another_format_than_declared_is_broken():
    out = BytesIO()
    drawn("x").save(out, "BMP")
    assert str(refused(out.getvalue())) == "damaged: it is no PNG picture"


def test_description_is_the_first_paragraph_and_the_text_follows():
    extraction = extract(saved(drawn("Berth number 42")))
    described = with_description(extraction, "A sign on a quay.\r\n", "image/png")
    assert described.text == "A sign on a quay.\n\nBerth number 42"
    assert [(p.start, p.end) for p in described.parts] == [(0, len(described.text))]
    assert described.metadata == {"width": 320, "height": 60, "described": True}


def test_a_picture_without_text_can_be_described():
    described = with_description(None, "A blue square.", "image/png")
    assert (described.text, described.media_type) == ("A blue square.", "image/png")
    assert described.extractor.startswith("image/")
