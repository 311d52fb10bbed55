"""Rich texts: headings, tables, lists and notes, in the encodings of their fonts."""

from __future__ import annotations

import pytest

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

FONTS = (
    r"{\fonttbl{\f0\froman\fcharset0 Times;}{\f1\fswiss\fcharset238{\*\panose 02020603}Arial CE;}"
    r"{\f2\fcharset204 Arial Cyr;}{\f3\fcharset128 MS Mincho;}{\f4\fcharset2 Symbol;}}{\colortbl;\red0\green9\blue9;}"
)
STYLES = (
    r"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 Nadpis;}{\s2 heading 2;}{\s3 Title;}{\s7 toc 1;}"
    r"{\*\cs10 Default Paragraph Font;}}"
)


def rtf(body: str, info: str = "") -> bytes:
    return f"{{\\rtf1\\ansi\\ansicpg1252\\deff0{FONTS}{STYLES}{info}{body}}}".encode("latin-1")


def read(content: bytes, name: str = "letter.rtf") -> Extraction:
    return extract(RawDocument(content, name), ExtractionSettings())


def text(body: str) -> str:
    return read(rtf(body)).text


def test_paragraphs_are_blocks_and_headings_are_marked_by_their_style_or_outline_level():
    extraction = read(
        rtf(
            r"\pard\s1 First\par\pard\s0 Plain words\line in two lines.\par\pard\s2 Second\par"
            r"\pard\outlinelevel2\b Third\b0\par\pard\outlinelevel9 Text\par"
        )
    )
    assert extraction.text == "# First\n\nPlain words\nin two lines.\n\n## Second\n\n### Third\n\nText"
    assert [(heading.level, heading.title) for heading in extraction.headings] == [
        (1, "First"), (2, "Second"), (3, "Third"),
    ]  # fmt: skip
    assert (extraction.title, extraction.warnings, extraction.extractor) == ("First", (), "rtf/2")


def test_properties_are_metadata_under_the_names_of_all_formats():
    info = (
        r"{\info{\title Kranich\'e9}{\author Ada \u352?}{\subject Birds}{\creatim\yr2024\mo2\dy29\hr8\min5}"
        r"{\revtim\yr0}{\nofpages3}}"
    )
    extraction = read(rtf("Text", info))
    assert extraction.title == "Kraniché"
    assert extraction.metadata == {"author": "Ada Š", "subject": "Birds", "created": "2024-02-29T08:05"}
    assert extraction.text == "Text"


def test_bytes_are_decoded_in_the_encoding_of_their_font():
    body = r"caf\'e9 {\f1 \'e8e\'9aky} {\f2 \'cc\'e8\'f0} {\f3 \'93\'fa\'96\'7b\'83A} end"
    assert text(body) == "café češky Мир 日本ア end"


def test_unicode_characters_replace_what_stands_in_for_them():
    assert text(r"\u8364?\u8364\'80x {\uc2\u960ab}{\uc0\u960}y \u-10179?\u-8704?!") == "€€x ππy 😀!"
    assert text(r"\u8364\tab z") == "€z"


def test_special_characters_and_hidden_text():
    body = r"a\~b\_c\-d\emdash\{e\}\\ {\v hidden}\v gone\v0  {\deleted old}\lquote q\rquote"
    assert text(body) == "a\u00a0b\u2011cd—{e}\\  ‘q’"


def test_rows_are_a_table_with_its_header():
    row = r"\trowd\cellx900\cellx1800\pard\intbl {}\cell {}\cell\row"
    body = r"\pard Before\par" + "".join(
        row.format(*cells) for cells in [("Name", "Weight"), (r"Crane\par Grus", "5 kg"), ("Owl", "1 kg")]
    )
    assert text(body + r"\pard After\par") == (
        "Before\n\n| Name | Weight |\n| --- | --- |\n| Crane; Grus | 5 kg |\n| Owl | 1 kg |\n\nAfter"
    )


def test_lists_keep_their_numbers_and_depth():
    item = r"{{\listtext\pard\f4 {}\tab}}\ilvl{} {}\par"
    marks = [(r"\'b7", 0, "one"), ("a)", 1, "two"), (r"\u-3913?", 0, "three")]
    assert text(r"\pard " + "".join(item.format(*mark) for mark in marks) + r"\pard end\par") == (
        "- one\n  a) two\n- three\n\nend"
    )


def test_notes_comments_and_text_boxes_follow_the_text_and_running_heads_come_once():
    body = (
        r"{\header Plan 7, page {\field{\*\fldinst PAGE}{\fldrslt 3}}\par}{\headerf Draft\par}\sect{\header Draft}"
        r"Cranes{\super\chftn}{\footnote\pard {\super\chftn} Grus grus.} fly"
        r"{\*\atnid X}{\*\atnauthor Ada}\chatn{\*\annotation\pard {\*\atndate 5} Really?} south"
        r"{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 202}}{\shptxt In a box.\par}}{\shprslt In a box.}}.\par Next.\par"
    )
    assert text(body) == (
        "Cranes[1] fly south.\n\nIn a box.\n\nNext.\n\n[1] Grus grus.\n\nComments:\n- Ada: Really?\n\nPlan 7,\nDraft"
    )


def test_links_show_their_text_and_pictures_binaries_and_unknown_groups_nothing():
    body = (
        r'See {\field{\*\fldinst HYPERLINK "https://example.org"}{\fldrslt the page}}. {\pict\pngblip 89504e47}'
        r"{\*\unheardof secret {deep}}{\object{\*\objdata 0105}{\result Sheet}} "
    )
    assert text(body) == "See the page. Sheet"
    picture = rb"{\rtf1 a{\pict\bin7 }}}{{\x} b}"
    assert read(picture).text == "a b"


def test_a_table_of_contents_is_left_out():
    assert text(r"\pard\s7 First\tab 1\par\pard\s7 Second\tab 2\par\pard\s1 First\par") == "# First"


def test_what_is_under_another_name_is_read_and_what_is_none_is_damaged():
    assert read(rtf("words"), "letter.doc").text == "words"
    with pytest.raises(BrokenDocument, match=r"damaged: it does not begin as a rich text does"):
        read(b"plain words", "letter.rtf")


def test_a_file_that_ends_early_is_read_with_a_note_and_one_without_words_is_skipped():
    extraction = read(rtf(r"one\par two\par")[:-4])
    assert extraction.text == "one\n\ntwo"
    assert extraction.warnings == ("the file ends early; the text up to there is read",)
    with pytest.raises(SkippedDocument, match="no-text"):
        read(rtf(r"{\pict 00}\par"))


def test_groups_beyond_any_sense_are_refused():
    with pytest.raises(BrokenDocument, match="too-deep"):
        read(b"{\\rtf1" + b"{" * 5000 + b"}" * 5000 + b"}")
    assert read(b"{\\rtf1" + b"{a" * 1000 + b"}" * 1001).text == "a" * 1000


def test_what_follows_the_document_is_no_part_of_it():
    assert read(rtf("words") + b"} junk {more}").text == "words"
