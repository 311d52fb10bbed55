"""PDF: positions, paragraphs, hyphens, headings, passwords, scans and damage, on files written byte by byte here."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace

import pytest
from pydantic import SecretStr
from pypdfium2 import PdfDocument

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract import ocr
from parquetry.extract.layout import HYPHEN_MARK, Line, join_divided, join_raised, paragraphs, words_of
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.extract.pdf.text_page import TextPage, quarter_turns, upright
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.pdf_writer import black_box, encrypted, line, lines, scanned, with_filled_field, write_pdf

BODY = [
    "The warehouse in Trondheim holds spare parts for nine years,",
    "and every crate carries the number of its shelf in red paint.",
    "Nobody but the keeper may move a crate from one row to another.",
]


def extract(content: bytes, **settings: object) -> Extraction:
    chosen = ExtractionSettings.model_validate({"ocr": False} | settings)
    return PdfExtractor().extract(RawDocument(content, "file.pdf"), "application/pdf", chosen)


def refused(content: bytes, kind: type[Exception], **settings: object) -> str:
    with pytest.raises(kind) as caught:
        extract(content, **settings)
    return f"{caught.value.reason}: {caught.value.detail}"


def test_each_page_is_a_part_with_its_number_and_text():
    extraction = extract(write_pdf([line(72, 700, "Front page"), b"", line(72, 700, "Third page")]))
    assert [(p.kind, p.number, p.format) for p in extraction.parts] == [("page", 1, "text"), ("page", 3, "text")]
    assert [extraction.text[p.start : p.end] for p in extraction.parts] == ["Front page", "Third page"]
    assert extraction.metadata["pages"] == 3
    assert not extraction.warnings, "an empty page has lost nothing"


def test_document_information_becomes_title_and_metadata():
    information = {
        "Title": "Microsoft Word - Crane manual",
        "Author": "Åse Lund",
        "Subject": "Lifting",
        "CreationDate": "D:20240229081530+02'00'",
    }
    extraction = extract(write_pdf([line(72, 700, "x" * 40)], information=information))
    assert extraction.title == "Crane manual"
    expected = {
        "author": "Åse Lund",
        "subject": "Lifting",
        "created": "2024-02-29T08:15:30+02:00",
        "language": "en-GB",
        "pages": 1,
    }
    assert extraction.metadata == expected


@pytest.mark.parametrize("declared", ["Untitled document", "thesis.dvi", "(anonymous)", ""])
def test_a_title_that_says_nothing_gives_way_to_the_largest_type_on_the_first_page(declared: str):
    page = line(72, 760, "Rules for the harbour", 20) + lines(72, 700, BODY)
    assert extract(write_pdf([page], information={"Title": declared})).title == "Rules for the harbour"


@pytest.mark.parametrize("contents", ["Contents", "Table of contents:", "Inhaltsverzeichnis"])
def test_the_heading_of_a_list_of_contents_is_no_title_however_large_it_is(contents: str):
    page = line(72, 760, contents, 28) + line(72, 720, "Rules for the harbour", 20) + lines(72, 680, BODY)
    assert extract(write_pdf([page])).title == "Rules for the harbour"


def test_a_wider_gap_and_an_indented_first_line_start_paragraphs():
    page = lines(72, 700, BODY) + lines(72, 640, BODY) + line(90, 604, "An indented line opens the third one,")
    page += lines(72, 592, ["which goes on at the margin as before.", "And ends."])
    blocks = extract(write_pdf([page])).text.split("\n\n")
    assert blocks[:2] == ["\n".join(BODY)] * 2
    assert blocks[2].startswith("An indented line opens")
    assert len(blocks) == 3


def test_columns_are_read_one_after_the_other():
    left = [f"left column line number {i}" for i in range(6)]
    right = [f"right column line number {i}" for i in range(6)]
    page = lines(72, 700, left) + lines(320, 700, right)
    assert extract(write_pdf([page])).text.split() == " ".join(left + right).split()


def test_a_raised_footnote_mark_stays_in_its_line():
    page = line(72, 700, "as was shown before") + line(164, 704, "7", 6) + line(168.5, 700, ", and it held.")
    text = extract(write_pdf([page + lines(72, 688, BODY)])).text
    assert text.startswith("as was shown before7, and it held.\n")


def test_a_mirrored_letter_that_ends_a_piece_keeps_its_line_together():
    mirrored = b"BT /F1 10 Tf -1 0 0 1 154 700 Tm (E) Tj ET\n"
    page = line(72, 700, "It supports the X") + mirrored + line(154.2, 704, "A", 6) + line(159.2, 700, "TeX engine.")
    text = extract(write_pdf([page + lines(72, 688, BODY)])).text
    assert text.startswith("It supports the X EATeX engine.\nThe warehouse")


def test_words_divided_at_line_ends_are_joined_as_the_document_writes_them_elsewhere():
    page = lines(72, 700, ["The impor-", "tant self-", "test of the crane, an im-", "portant long-", "term matter"])
    page += lines(72, 500, ["The self-test is important. It is a long-term plan."])
    text = extract(write_pdf([page])).text
    assert " ".join(text.split()).startswith("The important self-test of the crane, an important long-term matter")


@pytest.mark.parametrize(
    ("text", "elsewhere", "joined"),
    [
        ("state-of\ufffethe-art", "", "state-of-the-art"),
        ("Anglo\ufffeSaxon", "", "Anglo-Saxon"),
        ("COVID\ufffe19", "", "COVID-19"),
        ("dual\ufffeencoder", "a dual role of the encoder", "dual-encoder"),
        ("struc\ufffetures", "", "structures"),
        ("struc\ufffetures", "struc\ufffetures again", "structures"),
        ("on\ufffeline", "on the line, online", "online"),
    ],
)
def test_hyphen_at_a_line_end_belongs_to_the_word_or_to_the_line(text: str, elsewhere: str, joined: str):
    assert join_divided(text, words_of([text, elsewhere])) == joined


def test_outline_entries_stand_at_the_lines_that_they_name():
    first = line(72, 760, "1 Scope") + lines(72, 740, BODY) + line(72, 600, "2 Safety of") + line(72, 588, "the crew")
    second = lines(72, 760, BODY) + line(72, 500, "A line that the outline calls otherwise") + lines(72, 480, BODY)
    outline = [("Scope", 0, 780.0), ("Safety of the crew", 0, None), ("Annex", 1, 512.0), ("Index", 1, None)]
    extraction = extract(write_pdf([first, second], outline=outline))
    found = {h.title: extraction.text[h.start :].split("\n")[0] for h in extraction.headings}
    assert found == {
        "Scope": "1 Scope",
        "Safety of the crew": "2 Safety of",
        "Annex": "A line that the outline calls otherwise",
        "Index": BODY[0],
    }
    assert [h.start for h in extraction.headings] == sorted(h.start for h in extraction.headings)
    assert {h.level for h in extraction.headings} == {1}


def test_without_an_outline_larger_type_makes_headings_by_its_size():
    page = line(72, 780, "Harbour manual", 20) + line(72, 740, "Cranes", 14) + lines(72, 720, BODY * 3)
    page += line(72, 560, "2.1 Brakes", 11) + lines(72, 540, BODY * 3)
    extraction = extract(write_pdf([page]))
    assert [(h.level, h.title) for h in extraction.headings] == [
        (1, "Harbour manual"),
        (2, "Cranes"),
        (3, "2.1 Brakes"),
    ]
    assert all(extraction.text[h.start :].startswith(h.title) for h in extraction.headings)


def test_type_that_changes_all_the_time_is_a_design_and_makes_no_headings():
    page = b"".join(line(72, 760 - 40 * i, BODY[0]) + line(72, 740 - 40 * i, f"Offer number {i}", 20) for i in range(9))
    assert not extract(write_pdf([page])).headings


@pytest.mark.parametrize(
    ("turned", "matrix"), [(90, b"0 1 -1 0 595 0 cm "), (180, b"-1 0 0 -1 595 842 cm "), (270, b"0 -1 1 0 0 842 cm ")]
)
def test_a_page_that_is_shown_turned_keeps_its_paragraphs(turned: int, matrix: bytes):
    page = lines(72, 500, BODY) + lines(72, 440, BODY)
    upright = extract(write_pdf([page])).text
    assert upright.count("\n\n") == 1
    assert extract(write_pdf([matrix + page], turned=turned)).text == upright


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256"])
def test_encrypted_file_opens_with_a_password_from_the_settings(algorithm: str):
    content = encrypted(write_pdf([line(72, 700, "the keeper's secret")]), "höhle", algorithm)
    assert extract(content, passwords=[SecretStr("wrong"), SecretStr("höhle")]).text == "the keeper's secret"


def test_encrypted_file_with_an_empty_password_opens_without_settings():
    assert extract(encrypted(write_pdf([line(72, 700, "not to be printed")]), "")).text == "not to be printed"


def test_encrypted_file_without_its_password_is_broken_and_says_where_to_put_it():
    content = encrypted(write_pdf([line(72, 700, "secret")]), "right")
    assert refused(content, BrokenDocument) == "encrypted: it needs a password; add it to extraction.passwords"
    told = refused(content, BrokenDocument, passwords=[SecretStr("wrong")])
    assert told == "encrypted: it needs a password; none of the 1 in extraction.passwords opens it"


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (
            b"/Adobe.PubSec /SubFilter /adbe.pkcs7.s5 /V 4 /CF << /Own << /CFM /AESV2 /Recipients [<3080>] >> >>",
            "encrypted: it is encrypted for the holders of certificates; one of them can save it without encryption",
        ),
        (
            b"/Acme.Lock /V 1",
            "encrypted: it is encrypted by a method that is not supported; save it without encryption",
        ),
    ],
)
def test_a_file_that_no_password_opens_is_named_as_encrypted(handler: bytes, why: str):
    content = write_pdf([lines(72, 700, BODY)], encryption=b"<< /Filter " + handler + b" >>")
    assert refused(content, BrokenDocument, passwords=["no use"]) == why


def test_a_page_without_a_text_layer_is_reported_and_the_others_are_read():
    extraction = extract(write_pdf([line(72, 700, "written"), black_box(72, 72, 300, 300)]))
    assert extraction.text == "written"
    assert extraction.warnings == ("page 2 has no text layer",)


@pytest.mark.slow
def test_a_scan_is_skipped_without_ocr_and_read_with_it():
    content = scanned(write_pdf([lines(20, 90, BODY, 10, 16)], size=(360, 120)))
    assert refused(content, SkippedDocument).startswith("no-text: its pages are pictures without a text layer;")
    extraction = extract(content, ocr=True)
    assert " ".join(extraction.text.split()) == " ".join(BODY)
    assert extraction.warnings == ("page 1 has no text layer; its text is read by OCR",)


def test_ocr_stops_when_the_time_for_the_document_is_nearly_used_up():
    content = scanned(write_pdf([line(20, 20, "written")] * 2, size=(100, 50)))
    told = refused(content, SkippedDocument, ocr=True, timeout_seconds=1e-9)
    assert told.endswith("there was no time to read one; raise extraction.timeout_seconds")


def test_a_picture_in_which_nothing_is_written_is_skipped_as_such():
    told = refused(write_pdf([black_box(20, 20, 60, 60)], size=(100, 100)), SkippedDocument, ocr=True)
    assert told == "no-text: its pages are pictures in which no text can be read"


@pytest.mark.parametrize("shape", [(20, 20, 260, 2), (20, 20, 2, 80), (0, 0, 300, 100)])
def test_a_page_that_shows_a_rule_alone_is_not_read_by_ocr(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]):
    """For a rule, the engine takes longer than for a page of text; filings have many such pages."""

    def refuses(picture: object) -> list[object]:
        raise AssertionError("a rule was given to the engine")

    monkeypatch.setattr(ocr, "read", refuses)
    told = refused(write_pdf([black_box(*shape)], size=(300, 100)), SkippedDocument, ocr=True)
    assert told == "no-text: its pages are pictures in which no text can be read"
    with pytest.raises(AssertionError, match="given to the engine"):
        extract(write_pdf([black_box(20, 20, 260, 6)], size=(300, 100)), ocr=True)


def test_blank_pages_are_skipped_with_their_number():
    assert refused(write_pdf([b"", b""]), SkippedDocument) == "no-text: nothing is written on its 2 pages"


@pytest.mark.parametrize("content", [b"%PDF-1.7\n", b"%PDF-1.7\n" + bytes(range(256)) * 20, b"no pdf at all" * 100])
def test_garbage_is_broken_as_damaged(content: bytes):
    assert refused(content, BrokenDocument).startswith("damaged: ")


def test_what_the_first_engine_refuses_is_read_by_the_second(monkeypatch: pytest.MonkeyPatch):
    content = write_pdf([line(72, 700, "read all the same"), line(72, 700, "second page")], outline=[("One", 1, None)])
    monkeypatch.setattr("parquetry.extract.pdf.reader._open_with_pdfium", lambda *_: None)
    extraction = extract(content)
    assert [extraction.text[p.start : p.end] for p in extraction.parts] == ["read all the same", "second page"]
    assert [(h.title, h.start) for h in extraction.headings] == [("One", extraction.parts[1].start)]


def test_a_damaged_page_is_reported_and_the_others_are_read(caplog: pytest.LogCaptureFixture):
    content = write_pdf([line(72, 700, "sound page"), line(72, 700, "lost page")])
    content = content.replace(b"7 0 obj\n<< /Type /Page ", b"7 0 obj\n(no page now  ) %")
    with caplog.at_level(logging.WARNING):
        extraction = extract(content)
    assert extraction.text == "sound page"
    assert extraction.warnings == ("page 2 is damaged",)
    assert not caplog.records, "the engine's own grumbling is not for the operator"


def test_a_file_whose_only_page_is_damaged_is_broken():
    content = write_pdf([line(72, 700, "lost page")]).replace(
        b"5 0 obj\n<< /Type /Page ", b"5 0 obj\n(no page now  ) %"
    )
    assert refused(content, BrokenDocument).startswith("damaged: ")


def test_filled_form_fields_are_part_of_the_text():
    extraction = extract(with_filled_field(write_pdf([line(72, 700, "Name:")]), "Kari Nordmann"))
    assert extraction.text == "Name: Kari Nordmann"


def test_a_line_keeps_pieces_at_the_same_height_and_leaves_far_ones():
    first = Line("Harbour", 72, 110, 700, 710, 10)
    near = replace(first, text="manual", left=114, right=150)
    far = replace(first, text="p. 3", left=500, right=520)
    assert [joined.text for joined in join_raised([first, near, far])] == ["Harbour manual", "p. 3"]


def test_cells_of_a_row_are_one_line_however_wide_the_gap_in_their_table():
    label = Line("Harbour dues", 72, 132, 700, 710, 10)
    value = replace(label, text="m 367.2", left=210, right=250)
    below = replace(value, bottom=698, top=708)
    assert [joined.text for joined in join_raised([label, value])] == ["Harbour dues m 367.2"]
    assert [joined.text for joined in join_raised([label, below])] == ["Harbour dues", "m 367.2"]


def test_a_sentence_that_goes_on_in_the_next_column_is_not_cut():
    last = Line("The crane must not be", 72, 250, 100, 110, 10)
    following = Line("used in a storm.", 320, 450, 700, 710, 10)
    assert paragraphs([last, following]) == "The crane must not be\nused in a storm."
    assert paragraphs([replace(last, text="End."), following]) == "End.\n\nused in a storm."


def test_a_divided_word_is_joined_across_its_lines():
    first = Line("impor" + HYPHEN_MARK, 72, 100, 700, 710, 10)
    assert paragraphs([first, Line("tant", 72, 90, 688, 698, 10)]) == f"impor{HYPHEN_MARK}tant"


@pytest.mark.parametrize("content", [b"", line(72, 700, "cut-"), line(72, 700, "") + line(72, 680, "\x01 a \xad")])
def test_the_text_of_a_page_is_the_one_that_pypdfium2_reads(content: bytes):
    """It is read without pypdfium2, whose buffer fits a text at whose ends characters are missing."""
    with closing(PdfDocument(write_pdf([content]))) as document:
        page = document[0]
        expected, found = page.get_textpage(), TextPage(page)
        assert found.text == expected.get_text_range()
        found.close()


def test_positions_of_turned_text_are_those_of_the_upright_page():
    turns = [quarter_turns(*direction) for direction in [(1, 0), (0, 1), (-1, 0), (0, -1)]]
    assert turns == [0, 1, 2, 3]
    boxes = [upright(turn, 10, 20, 30, 40) for turn in turns]
    assert boxes == [(10, 20, 30, 40), (20, -30, 40, -10), (-30, -40, -10, -20), (-40, 10, -20, 30)]
