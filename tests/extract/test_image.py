"""Images: text, metadata and hostile files."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract import registry
from parquetry.extract.image import ImageExtractor, with_description
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif", "TIFF": "image/tiff"}


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


HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWl4AAAAAG1pZjFoZWl4bWlhZgAAAXdtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAACJpbG9jAA"
    "AAAERAAAEAAQAAAAABmwABAAAAAAAAAlkAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRtAAAAAAABAAAA92lwcnAA"
    "AADXaXBjbwAAAHJodmNDAQQIAAAAn/gAAAAAHvAA/Pz4+AAADwNgAAEAF0ABDAH//wQIAAADAJ/4AAADAAAeugJAYQABACdCAQEECAAAAwCf+A"
    "AAAwAAHsAoIEFlurkprmwIAAADAMgAAAMACEBiAAEABkQBwXPBiQAAABNjb2xybmNseAABAA0ABoAAAAAUaXNwZQAAAAAAAAFAAAAAQAAAAChj"
    "bGFwAAABQAAAAAEAAAA8AAAAAQAAAAAAAAAC/////AAAAAIAAAAOcGl4aQAAAAABCAAAABhpcG1hAAAAAAAAAAEAAQWBAgMFhAAAAmFtZGF0AA"
    "ACVSgBrgkoThIbt0yYuAFqneilKh14W0/YsHo/xBYf+byg8d40UZFeHirRKBA9nhSH18TNE02t9avnM7SZ1qTO+pJXaG1N3SiW/JVh2qNPwUNh"
    "7Saa2zUZrb+bI4lqujKkCbqrfvmIe3+k6bKe0q4lRxEmCYVcb0IZX2HgiWOL3YCPPfY+cWlHbL2SXElRpuA/txjSXKCODrqQMEon01hwp9gjdD"
    "cDrE3rCOeoLTWTgRJeyNzkQq6FWRcveD2KMIFWcoCWipKyGBsCFKbTRlqK3476RUvcmpSyllNJmPHvllmefe/dgFhH0Zdrg17K0pp2nah/D0oT"
    "3LURvDxNriBiBQ8WKKTiSU/H6CWno3XCVw8Ua1g7nI9WFkMPhP0/QbKc7W56dh/EiG5SaAyFashfuATDZJwOhlMdKparUB6+Og6hyqHr4Swk5E"
    "Fc8XoJ4gMiRMfTlEfsQEydD8A3O99dlLCvbgZ+SWIskQHmYYu/yDYUHd/k+oL9wrfZY8tdyIzVscYe+sJk3FjnM9UqOLarV7x4f2NDbpFvk8Yj"
    "HHSKuWNImSGSkBRfd6dtEp0rQlnPTarIE5G0STM/lJD98jFwUeqY+B1tTlokiRb6+JFpt7QXxMNyzqCT10C9japIDkUz6AK21j7vtyzP9glNqU"
    "cpl4GcBZi43YADqaUzC/nM4CLM96pfX49ptzYfQAW3FSCpNrxrYIENSexUXsMYwuOUgsRTI3llkE66DgtKtR7r9pvJopgzkDQazgtGkb2OyUWM"
    "wp8rJOiVoEyC2tImW1b1i7QMABarRA=="
)
"""`drawn("Berth number 42")`: the extra decodes HEIC and does not write it"""


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


def tiff(*pages: Image.Image, **options: Any) -> bytes:
    return saved(pages[0], "TIFF", save_all=True, append_images=pages[1:], **options)


@pytest.mark.parametrize("packing", [None, "tiff_lzw", "tiff_adobe_deflate", "jpeg", "packbits"])
def test_each_page_of_a_tiff_is_a_page(packing: str | None):
    extraction = extract(
        tiff(drawn("Berth number 42"), drawn("Crane number 7"), tiffinfo={269: "Quay plans"}, compression=packing),
        "image/tiff",
    )
    assert extraction.text == "Berth number 42\n\nCrane number 7"
    assert [(p.kind, p.number, p.start, p.end, p.format) for p in extraction.parts] == [
        ("page", 1, 0, 15, "text"), ("page", 2, 17, 31, "text"),
    ]  # fmt: skip
    assert extraction.title == "Quay plans"
    assert extraction.metadata == {"width": 320, "height": 60, "pages": 2}


def test_a_fax_is_read():
    page = drawn("Berth number 42").convert("1")
    assert extract(tiff(page, compression="group4"), "image/tiff").text == "Berth number 42"


def test_smaller_copies_and_masks_in_a_tiff_are_no_pages():
    copy = drawn("Crane number 7")
    copy.encoderinfo = {"tiffinfo": {254: 1}}
    extraction = extract(tiff(drawn("Berth number 42"), copy, drawn("Berth number 43")), "image/tiff")
    assert extraction.text == "Berth number 42\n\nBerth number 43"
    assert [part.number for part in extraction.parts] == [1, 2]


@pytest.mark.slow
def test_lines_that_the_pages_of_a_tiff_repeat_at_their_edges_stay_once():
    def page(thing: str) -> Image.Image:
        image = Image.new("RGB", (800, 1000), "white")
        for place, text in ((20, "Harbour Gazette"), (300, f"The {thing} was closed"), (600, f"No {thing} came")):
            ImageDraw.Draw(image).text((40, place), text, fill="black", font=ImageFont.load_default(40))
        return image

    text = extract(tiff(*map(page, ("berth", "crane", "quay", "mole"))), "image/tiff").text
    assert text.count("Harbour Gazette") == 1
    assert text.count("was closed") == text.count("came") == 4


def test_pages_for_which_there_is_no_time_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parquetry.extract.ocr.TIME_SHARE", 0.0)
    extraction = extract(tiff(*[drawn("Berth number 42")] * 3), "image/tiff")
    assert extraction.text == "Berth number 42"
    assert extraction.metadata["pages"] == 3
    assert extraction.warnings == (
        "the last 2 pages were not read: there was no time; raise extraction.timeout_seconds",
    )


def test_more_pages_than_a_tiff_may_have_are_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parquetry.extract.image.MAX_PAGES", 2)
    extraction = extract(tiff(*[drawn("Berth number 42")] * 4), "image/tiff")
    assert extraction.metadata["pages"] == 2
    assert extraction.warnings == ("pages after 2 were not read: more than 2 pictures",)
    assert extract(tiff(*[drawn("Berth number 42")] * 2), "image/tiff").warnings == ()


def test_a_damaged_page_is_noted_and_the_others_are_read():
    whole = tiff(*map(drawn, ("Berth number 42", "Crane number 7", "Berth number 43")), compression="tiff_lzw")
    opened = Image.open(BytesIO(whole))
    opened.seek(1)
    (place,) = opened.tag_v2[273]
    broken = whole[:place] + b"\xff" * 9 + whole[place + 9 :]
    extraction = extract(broken, "image/tiff")
    assert extraction.text == "Berth number 42\n\nBerth number 43"
    assert [part.number for part in extraction.parts] == [1, 3]
    assert extraction.warnings == ("page 2 is damaged",)


def test_what_follows_a_page_that_cannot_be_found_is_noted():
    whole = tiff(drawn("Berth number 42"), drawn("Crane number 7"))
    entries = struct.unpack_from("<H", whole, 8)[0]
    link = 10 + 12 * entries
    broken = whole[:link] + struct.pack("<I", len(whole) - 1) + whole[link + 4 :]
    extraction = extract(broken, "image/tiff")
    assert extraction.text == "Berth number 42"
    assert extraction.warnings == ("page 2 and those after it are damaged",)


@pytest.mark.parametrize("number", [0, 1])
def test_a_page_with_too_many_pixels_is_refused_before_it_is_unpacked(number: int):
    whole = bytearray(tiff(drawn("Berth number 42"), drawn("Crane number 7")))
    widths = [found.start() for found in re.finditer(struct.pack("<HHII", 256, 4, 1, 320), bytes(whole))]
    for place in (widths[number] + 8, widths[number] + 20):
        struct.pack_into("<I", whole, place, 60_000)
    assert str(refused(bytes(whole), "image/tiff")) == "too-many-pixels: it has more than 100,000,000 pixels"


@pytest.mark.parametrize(("kind", "mode"), [("PNG", "I;16"), ("TIFF", "I;16"), ("TIFF", "I"), ("TIFF", "F")])
def test_pictures_of_more_than_8_bits_are_read(kind: str, mode: str):
    values = drawn("Berth number 42").convert("L").convert("I").point(lambda value: value * 10 + 900)
    extraction = extract(saved(values.convert(mode), kind), TYPES[kind])
    assert extraction.text == "Berth number 42"


def test_a_picture_that_no_model_takes_is_noted_where_descriptions_are_wanted():
    told = extract(tiff(drawn("Berth number 42")), "image/tiff", include_image_descriptions=True).warnings
    assert told == ("not described: models take PNG, JPEG, WebP and GIF",)
    assert extract(saved(drawn("Berth number 42")), include_image_descriptions=True).warnings == ()


def test_text_in_a_heic_picture_is_read():
    extraction = extract(HEIC, "image/heic", include_image_descriptions=True)
    assert extraction.text == "Berth number 42"
    assert (extraction.metadata["width"], extraction.metadata["height"]) == (320, 60)
    assert extraction.warnings == ("not described: models take PNG, JPEG, WebP and GIF",)


def test_a_heic_picture_with_too_many_pixels_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parquetry.extract.image.MAX_PIXELS", 10_000)
    # The bound of the library itself is set by the reader; later tests read larger pictures.
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", None)
    assert str(refused(HEIC, "image/heic")) == "too-many-pixels: it has more than 10,000 pixels"


def test_a_heic_picture_that_lies_about_its_size_is_damaged():
    place = HEIC.index(b"ispe") + 8
    assert struct.unpack_from(">II", HEIC, place) == (320, 64)
    lying = HEIC.replace(HEIC[place : place + 8], struct.pack(">II", 9_000, 9_000))
    assert refused(lying, "image/heic", ocr=False).reason == "damaged"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_heic_picture_cut_short_is_broken_as_damaged(share: float):
    error = refused(HEIC[: int(len(HEIC) * share)], "image/heic", ocr=False)
    assert (type(error), error.reason) == (BrokenDocument, "damaged")


def test_without_the_extra_a_heic_picture_is_skipped_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    assert registry.extractor_for("image/heic") is not None
    monkeypatch.setattr("parquetry.extract.image.heic_available", lambda: False)
    with pytest.raises(SkippedDocument, match=r"pip install 'parquetry\[heic\]'; or convert it to \.jpg"):
        registry.extract(RawDocument(HEIC, "a.heic"), ExtractionSettings())
