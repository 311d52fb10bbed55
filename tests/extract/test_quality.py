"""Facts about how completely a document was read: right where they are known, and None where they are not."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from pptx import Presentation

from parquetry.extract.builder import TextBuilder
from parquetry.extract.image import with_description
from parquetry.extract.layout import Line
from parquetry.extract.pdf import reader as pdf_reader
from parquetry.extract.quality import PageFacts
from parquetry.extract.registry import extract
from parquetry.model import Quality, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.pdf_writer import black_box, line, lines, ruled, scanned, write_pdf

BODY = ["The warehouse in Trondheim holds spare parts", "and every crate carries the number of its shelf."]


def quality(content: bytes, filename: str, **settings: Any) -> Quality:
    chosen = ExtractionSettings.model_validate({"ocr": False} | settings)
    found = extract(RawDocument(content, filename), chosen).quality
    assert found is not None
    return found


def photographed(blur: float) -> bytes:
    """Return a picture of two lines; the higher the blur, the harder it is to read."""
    image = Image.new("L", (620, 110), 255)
    draw = ImageDraw.Draw(image)
    for number, text in enumerate(BODY):
        draw.text((10, 14 + 44 * number), text, fill=0, font=ImageFont.load_default(24))
    out = BytesIO()
    image.filter(ImageFilter.GaussianBlur(blur)).convert("RGB").save(out, "PNG")
    return out.getvalue()


# --- pages


def test_a_blank_page_has_no_text_and_is_not_unread():
    found = quality(write_pdf([line(72, 700, "four"), b"", line(72, 700, "letters")]), "a.pdf")
    assert (found.pages, found.without_text, found.unread) == (3, (2,), ())
    assert (found.least, found.median) == (0, 4)


def test_a_picture_of_a_page_is_unread_without_ocr():
    found = quality(write_pdf([line(72, 700, "written"), black_box(72, 72, 300, 300)]), "a.pdf")
    assert (found.pages, found.without_text, found.unread, found.ocr, found.ocr_confidence) == (2, (2,), (2,), (), None)


def test_pages_that_are_not_reached_count_as_unread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pdf_reader, "_FREE_CHARACTERS", 5)
    monkeypatch.setattr(pdf_reader, "_CHARACTERS_PER_BYTE", 0)
    found = quality(write_pdf([line(72, 700, "page one"), line(72, 700, "page two"), line(72, 700, "three")]), "a.pdf")
    assert (found.pages, found.without_text, found.unread) == (3, (2, 3), (2, 3))


def test_a_damaged_page_counts_as_unread():
    content = write_pdf([line(72, 700, "sound page"), line(72, 700, "lost page")])
    found = quality(content.replace(b"7 0 obj\n<< /Type /Page ", b"7 0 obj\n(no page now  ) %"), "a.pdf")
    assert (found.pages, found.without_text, found.unread) == (2, (2,), (2,))


def test_slides_are_counted_and_it_is_not_known_what_their_pictures_say():
    deck = Presentation()
    for title in ("Cranes", ""):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    out = BytesIO()
    deck.save(out)
    found = quality(out.getvalue(), "deck.pptx")
    assert (found.pages, found.without_text, found.unread, found.ocr) == (2, (2,), None, None)


def test_pages_joined_over_the_limit_make_their_number_unknown():
    builder = TextBuilder()
    builder._joined = 1
    builder.part("page", 1)
    builder.text("one")
    found = builder.build(title=None, metadata={}, media_type="", extractor="", pages=PageFacts(7)).quality
    assert found is not None
    assert (found.pages, found.without_text, found.least, found.median) == (None, None, None, None)


@pytest.mark.parametrize(("name", "text"), [("a.txt", "some words"), ("a.md", "# some"), ("a.csv", "a,b\n1,2\n")])
def test_formats_without_pages_have_none(name: str, text: str):
    found = quality(text.encode(), name)
    assert (found.pages, found.without_text, found.unread, found.least, found.median) == (None,) * 5
    assert (found.ocr, found.ocr_confidence, found.cut) == (None, None, 0)


# --- OCR


def test_a_picture_that_is_hard_to_read_has_a_lower_confidence():
    clear, blurred = (quality(photographed(blur), "a.png", ocr=True) for blur in (0, 3.4))
    assert clear.pages == blurred.pages == 1
    assert clear.ocr is not None
    assert [number for number, _ in clear.ocr] == [1]
    assert clear.ocr_confidence is not None
    assert blurred.ocr_confidence is not None
    assert 0.6 <= blurred.ocr_confidence < clear.ocr_confidence - 0.02 <= 1


@pytest.mark.slow
def test_the_confidence_of_a_document_is_weighted_by_the_characters_of_its_pages():
    scan = scanned(write_pdf([lines(20, 90, BODY), line(20, 60, "Berth")], size=(360, 120)))
    found = quality(scan, "a.pdf", ocr=True)
    assert found.ocr is not None
    assert (found.unread, found.without_text, [number for number, _ in found.ocr]) == ((), (), [1, 2])
    sizes = [len(" ".join(BODY)), len("Berth")]
    mean = sum(size * confidence for size, (_, confidence) in zip(sizes, found.ocr, strict=True)) / sum(sizes)
    assert found.ocr_confidence == pytest.approx(mean, abs=0.001)


def test_a_described_picture_keeps_the_confidence_of_its_text():
    read = extract(RawDocument(photographed(0), "a.png"), ExtractionSettings(ocr=True))
    assert with_description(read, "Two lines about a warehouse.", "image/png").quality == read.quality
    assert with_description(None, "A blue square.", "image/png").quality == Quality(pages=1)


# --- characters


def test_glyphs_for_which_the_font_names_no_character_are_counted():
    content = write_pdf([lines(72, 700, ["PLAIN words", "more PLAIN words"]), line(72, 700, "words")], nameless="PLAIN")
    assert quality(content, "a.pdf").unmapped == 10
    assert quality(write_pdf([lines(72, 700, BODY)]), "a.pdf").unmapped == 0


def test_glyphs_of_a_page_that_is_read_by_ocr_do_not_count(monkeypatch: pytest.MonkeyPatch):
    content = write_pdf([lines(20, 90, BODY)], nameless="TW", size=(360, 120))
    assert quality(content, "a.pdf").unmapped == 2
    monkeypatch.setattr("parquetry.extract.pdf.engine.lacks_text", lambda *_: True)
    monkeypatch.setattr("parquetry.extract.ocr.as_text_lines", lambda _: [Line("x" * 200, 0, 9, 0, 9, 9)])
    found = quality(content, "a.pdf", ocr=True)
    assert (found.unmapped, found.least) == (0, 200)


def test_the_second_engine_does_not_tell_unmapped_glyphs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pdf_reader, "_open_with_pdfium", lambda *_: None)
    assert quality(write_pdf([lines(72, 700, BODY)]), "a.pdf").unmapped is None


def test_replaced_and_private_characters_count_in_every_format():
    assert quality("a \ue0a7 b \ufffd c \U000f1234 é".encode(), "a.txt").unmapped == 3
    assert quality(b"plain", "a.txt").unmapped == 0


def test_characters_over_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parquetry.extract.allowance.CHARACTERS_FREE", 10)
    monkeypatch.setattr("parquetry.extract.allowance.CHARACTERS_PER_BYTE", 0)
    assert quality(b"twelve chars", "a.txt").cut == 2


# --- tables

TABLE = "<table><tr><th>wood</th><th>price</th></tr><tr><td>oak</td><td>12</td></tr></table>"


def test_tables_are_counted_where_the_format_has_them():
    page = f"<html lang=en><body><main><p>{'Timber is sold by the metre. ' * 9}</p>{TABLE}<p>And:</p>{TABLE}</main>"
    assert quality(page.encode(), "a.html").tables == 2
    assert quality(page.replace(TABLE, "").encode(), "a.html").tables == 0
    # A long table is stored in blocks and is still one table.
    assert quality(("name,note\n" + "elm,wet and long\n" * 250).encode(), "a.csv").tables == 1


def test_ruled_tables_of_a_pdf_are_counted():
    grid = ruled([72, 200, 280], [700, 680, 660, 640])

    def page(word: str) -> bytes:
        cells = b"".join(line(x + 4, y - 14, f"{word} {x + y}") for y in (700, 680, 660) for x in (72, 200))
        return grid + cells

    assert quality(write_pdf([page("elm"), line(72, 700, "words"), page("oak")]), "a.pdf").tables == 2
    assert quality(write_pdf([line(72, 700, "words")]), "a.pdf").tables == 0


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py"])
def test_tables_that_nothing_looks_for_are_unknown(name: str):
    assert quality(b"| a | b |\n|---|---|\n| 1 | 2 |\n", name).tables is None
