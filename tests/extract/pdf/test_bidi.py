"""PDF: Hebrew and Arabic are read in the order of their letters, whatever their glyphs stand for."""

from __future__ import annotations

import pytest

from parquetry.extract.pdf.bidi import Glyph, in_reading_order, ligature
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.pdf_writer import glyphs, write_pdf

SETTINGS = ExtractionSettings.model_validate({"ocr": False})
LAM_ALEF = "\u0644\u0627"
LAM_ALEF_FORM = "\ufefc"


def shown(*lines: list[str]) -> str:
    """Return what is read of lines of glyphs, each from left to right on the page."""
    codes: dict[str, int] = {}
    for meaning in (meaning for line in lines for meaning in line):
        codes.setdefault(meaning, 0x41 + len(codes))
    page = b"".join(
        glyphs(72, 700 - 40 * i, bytes(codes[meaning] for meaning in line), 12) for i, line in enumerate(lines)
    )
    content = write_pdf([page], meanings={code: meaning for meaning, code in codes.items()})
    extraction = PdfExtractor().extract(RawDocument(content, "file.pdf"), "application/pdf", SETTINGS)
    return "\n".join(extraction.text.split("\n\n"))


def from_right(*glyphs: str) -> list[str]:
    """Return glyphs given in reading order as they stand on the page."""
    return list(reversed(glyphs))


def test_lam_alef_that_is_one_glyph_is_spelled_in_reading_order():
    assert shown(from_right(*"الس", LAM_ALEF, *"م عليكم")) == "السلام عليكم"


def test_a_ligature_with_a_code_point_of_its_own_is_spelled_in_reading_order():
    assert shown(from_right(*"الس", LAM_ALEF_FORM, "م")) == "السلام"


@pytest.mark.parametrize(
    ("found", "spelled"), [("ال", "لا"), ("لا", "لا"), ("يف", "في"), ("هللا", "الله"), ("لأ", "لأ")]
)
def test_ligatures_are_turned_unless_unicode_knows_them_as_they_are(found: str, spelled: str):
    assert ligature(found) == spelled


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ([*"Hello ", *from_right(*"שלום עולם"), *" world"], "Hello שלום עולם world"),
        ([*"open source ", *from_right(*"قال")], "قال open source"),
        ([*from_right(*"عن"), *" Windows 10 ", *from_right(*"قال")], "قال Windows 10 عن"),
        ([*"12/05/2024 ", *from_right(*"قال")], "قال 12/05/2024"),
        ([*"1,234.56 ", *from_right(*"שח")], "שח 1,234.56"),
        ([*"2024", *from_right(*"ב-")], "ב-2024"),
        ([*from_right(*" בית"), *"(50%)", *from_right(*"מחיר ")], "מחיר (50%) בית"),
        ([*from_right(*"אבג"), " ", "(", "ד", ")"], "(ד) אבג"),
    ],
    ids=["words in a Latin line", "Latin words", "Latin within", "date", "number", "prefix", "percent", "brackets"],
)
def test_letters_numbers_and_latin_words_of_a_line_are_in_the_order_in_which_they_are_read(line: list[str], text: str):
    assert shown(line, from_right(*"שורה בעברית ועוד שורה")).split("\n")[0] == text


def test_a_mark_follows_the_letter_at_which_it_is_drawn():
    row = [Glyph("ם", 0, 5, 1), Glyph("ו", 5, 10, 1), Glyph("ל", 10, 15, 1), Glyph("\u05b8", 16, 18, 1)]
    assert in_reading_order([*row, Glyph("ש", 15, 20, 1)], page_is_rtl=True) == "ש\u05b8לום"


def test_words_that_stand_among_each_other_are_left_as_they_are():
    assert in_reading_order([Glyph("ש", 0, 5, 1), Glyph("ל", 5, 9, 2), Glyph("ם", 9, 12, 1)], page_is_rtl=True) is None
