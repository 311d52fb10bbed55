"""PDF: words whose letters are set apart are words, and single letters stay single."""

from __future__ import annotations

import pytest

from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.pdf_writer import line, write_pdf

SETTINGS = ExtractionSettings.model_validate({"ocr": False})


def shown(content: bytes) -> str:
    return PdfExtractor().extract(RawDocument(write_pdf([content]), "file.pdf"), "application/pdf", SETTINGS).text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("A N N U A L   R E P O R T   2 0 2 4", "ANNUAL REPORT 2024"),
        ("A n n u a l   R e p o r t", "Annual Report"),
        ("É C O L E   D E   P A R I S", "ÉCOLE DE PARIS"),
        ("see the A N N U A L   R E P O R T   of last year", "see the ANNUAL REPORT of last year"),
        ("a n n u a l   r e p o r t", "annual report"),
    ],
)
def test_words_with_spaces_between_their_letters_are_joined(written: str, read: str):
    assert shown(line(72, 700, written)) == read


@pytest.mark.parametrize("step", [14, 18])
def test_letters_that_are_placed_one_by_one_make_words(step: int):
    letters = [line(72 + i * step + 0.8 * step * (i > 5), 700, letter, 12) for i, letter in enumerate("ANNUALREPORT")]
    assert shown(b"".join(letters)) == "ANNUAL REPORT"


@pytest.mark.parametrize(
    "written", ["S M T W T F S", "A B C D E F", "x y z w", "X X X X X", "Other 2 4 6 2 5 7", "Y N Y N Y", "a o e u"]
)
def test_single_letters_stay_single(written: str):
    assert shown(line(72, 700, written)) == written


def test_letters_as_far_apart_as_columns_stay_single():
    row = b"".join(line(72 + 30 * i, 700, letter) for i, letter in enumerate("RATED"))
    assert shown(row).split() == list("RATED")
