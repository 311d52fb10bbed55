"""Slides are extracted in reading order."""

import io

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Cm

from parquetry.errors import BrokenDocument
from parquetry.extract.package import Package, pack
from parquetry.extract.pptx import PptxExtractor
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
TITLE_AND_BODY, TITLE_ONLY, BLANK = 1, 5, 6


@pytest.fixture
def deck():
    return Presentation()


def saved(deck):
    target = io.BytesIO()
    deck.save(target)
    return target.getvalue()


def extract(deck_or_bytes):
    content = deck_or_bytes if isinstance(deck_or_bytes, bytes) else saved(deck_or_bytes)
    return PptxExtractor().extract(RawDocument(content, "a.pptx"), PPTX, ExtractionSettings())


def add_slide(deck, layout=BLANK, title=None):
    slide = deck.slides.add_slide(deck.slide_layouts[layout])
    if title:
        slide.shapes.title.text = title
    return slide


def add_box(shapes, left, top, text, height=1):
    box = shapes.add_textbox(Cm(left), Cm(top), Cm(4), Cm(height))
    box.text_frame.text = text
    return box


def test_every_slide_is_a_part_under_its_title(deck):
    add_slide(deck, TITLE_ONLY, "First")
    add_slide(deck)
    add_slide(deck, TITLE_ONLY, "Third")
    extraction = extract(deck)
    assert [(part.kind, part.number, part.name) for part in extraction.parts] == [
        ("slide", 1, "First"),
        ("slide", 3, "Third"),
    ]
    assert [extraction.text[part.start : part.end] for part in extraction.parts] == ["# First", "# Third"]
    assert [heading.title for heading in extraction.headings] == ["First", "Third"]
    assert extraction.title == "First"
    assert extraction.metadata["slides"] == 3


def test_shapes_are_read_row_by_row_whatever_their_order_in_the_file(deck):
    slide = add_slide(deck)
    add_box(slide.shapes, 12, 10.2, "delta")
    add_box(slide.shapes, 12, 1, "beta")
    add_box(slide.shapes, 1, 10, "gamma")
    add_box(slide.shapes, 1, 1.3, "alpha")
    assert extract(deck).text.split() == ["alpha", "beta", "gamma", "delta"]


def test_two_columns_are_read_one_after_the_other(deck):
    slide = add_slide(deck)
    add_box(slide.shapes, 12, 2, "right", height=10)
    add_box(slide.shapes, 1, 2.5, "left", height=10)
    assert extract(deck).text.split() == ["left", "right"]


def test_words_in_groups_within_groups_are_found(deck):
    outer = add_slide(deck).shapes.add_group_shape()
    add_box(outer.shapes.add_group_shape().shapes, 1, 1, "inmost")
    assert extract(deck).text == "inmost"


def test_bullets_keep_their_depth_and_a_lone_sentence_is_none(deck):
    body = add_slide(deck, TITLE_AND_BODY, "T").placeholders[1].text_frame
    body.text = "one"
    deeper = body.add_paragraph()
    deeper.text, deeper.level = "two", 1
    add_slide(deck, TITLE_AND_BODY, "U").placeholders[1].text_frame.text = "A sentence."
    assert extract(deck).text == "# T\n\n- one\n  - two\n\n# U\n\nA sentence."


def test_table_repeats_what_merged_cells_cover(deck):
    table = add_slide(deck).shapes.add_table(3, 2, Cm(1), Cm(1), Cm(8), Cm(4)).table
    for number, text in enumerate(["Part", "Price", "Bolt", "12", "", "14"]):
        table.cell(number // 2, number % 2).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    assert extract(deck).text == "| Part | Price |\n| --- | --- |\n| Bolt | 12 |\n| Bolt | 14 |"


def test_chart_becomes_a_table_under_its_title(deck):
    data = CategoryChartData()
    data.categories = ["North", "South"]
    data.add_series("Sales", (1.5, 2))
    frame = add_slide(deck).shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, Cm(1), Cm(1), Cm(9), Cm(9), data)
    frame.chart.chart_title.text_frame.text = "Regions"
    assert extract(deck).text == "Chart: Regions\n\n|  | Sales |\n| --- | --- |\n| North | 1.5 |\n| South | 2 |"


def test_notes_follow_the_slide(deck):
    slide = add_slide(deck, TITLE_ONLY, "T")
    slide.notes_slide.notes_text_frame.text = "Say this."
    assert extract(deck).text == "# T\n\nNotes:\nSay this."


def test_hidden_slide_is_kept_and_reported(deck):
    slide = add_slide(deck, TITLE_ONLY, "Secret")
    slide._element.set("show", "0")
    extraction = extract(deck)
    assert "Secret" in extraction.text
    assert extraction.warnings == ("slide 1 is hidden; its text is indexed",)


def test_alternative_text_is_kept_if_it_tells_something(deck):
    slide = add_slide(deck)
    for left, description in ((1, "A red barn"), (9, "image1.png")):
        picture = add_box(slide.shapes, left, 1, "")
        picture._element.nvSpPr.cNvPr.set("descr", description)
    assert extract(deck).text == "A red barn"


def test_slide_number_and_date_placeholders_are_left_out(deck):
    slide = add_slide(deck)
    box = add_box(slide.shapes, 1, 1, "SLIDE-NUMBER")
    box._element.nvSpPr.nvPr.append(
        box._element.makeelement(box._element.tag.replace("}sp", "}ph"), {"type": "sldNum"})
    )
    add_box(slide.shapes, 1, 5, "kept")
    assert extract(deck).text == "kept"


def test_slide_show_file_is_read_like_a_presentation(deck):
    add_slide(deck, TITLE_ONLY, "Show")
    package = Package(saved(deck), 1 << 30)
    types = package.read("[Content_Types].xml").replace(b"presentation.main+xml", b"slideshow.main+xml")
    assert extract(package.repack({"[Content_Types].xml": types})).text == "# Show"


def test_missing_slide_is_reported_and_the_others_are_read(deck):
    add_slide(deck, TITLE_ONLY, "One")
    add_slide(deck, TITLE_ONLY, "Two")
    package = Package(saved(deck), 1 << 30)
    relations = "ppt/_rels/presentation.xml.rels"
    first = f'Id="{deck.slides._sldIdLst[0].rId}"'.encode()
    extraction = extract(package.repack({relations: package.read(relations).replace(first, b'Id="gone"')}))
    assert [part.number for part in extraction.parts] == [2]
    assert extraction.warnings == ("slide 1 is listed but missing from the file",)


def test_slide_with_a_malformed_shape_keeps_its_words(deck):
    slide = add_slide(deck, TITLE_AND_BODY, "Planted")
    slide.placeholders[1].text_frame.text = "words"
    package = Package(saved(deck), 1 << 30)
    name = "ppt/slides/slide1.xml"
    extraction = extract(package.repack({name: package.read(name).replace(b'type="title"', b'type="zz"')}))
    assert extraction.text == "Planted\nwords"
    assert extraction.warnings[0].startswith("slide 1 is malformed")


def test_notes_that_are_no_notes_are_left_out_and_told(deck):
    slide = add_slide(deck, TITLE_ONLY, "Planted")
    slide.notes_slide.notes_text_frame.text = "a note"
    package = Package(saved(deck), 1 << 30)
    types = package.read("[Content_Types].xml").replace(b"presentationml.notesSlide+xml", b"presentationml.other+xml")
    extraction = extract(package.repack({"[Content_Types].xml": types}))
    assert extraction.text == "# Planted"
    assert extraction.warnings[0].startswith("slide 1 has notes or comments that are malformed and left out")


def test_core_properties_become_title_and_metadata(deck):
    add_slide(deck, TITLE_ONLY, "T")
    deck.core_properties.title, deck.core_properties.author = "Quarterly", "Ada"
    extraction = extract(deck)
    assert extraction.title == "Quarterly"
    assert extraction.metadata["author"] == "Ada"


@pytest.mark.parametrize("content", [pack({"[Content_Types].xml": b"<Types/>"}), pack({"a": b"b"})])
def test_archive_without_a_presentation_is_damaged(content):
    with pytest.raises(BrokenDocument) as caught:
        extract(content)
    assert caught.value.reason == "damaged"
