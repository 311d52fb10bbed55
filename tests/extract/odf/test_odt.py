"""Extraction from OpenDocument texts and slides keeps words, structure and positions."""

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract.odf.reader import OdtExtractor
from parquetry.extract.package import pack
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

ODT = "application/vnd.oasis.opendocument.text"
ODP = "application/vnd.oasis.opendocument.presentation"
SPACES = (
    " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"'
        for name, full in {
            "office": "office",
            "text": "text",
            "table": "table",
            "draw": "drawing",
            "style": "style",
            "presentation": "presentation",
            "meta": "meta",
            "svg": "svg-compatible",
        }.items()
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
STYLES = """
<style:style style:name="P1" style:parent-style-name="Title"/>
<style:style style:name="P2" style:parent-style-name="Heading_20_2"/>
<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/>
<text:list-level-style-bullet text:level="2"/></text:list-style>
"""


def odf(body, kind="text", meta="", masters="", manifest=""):
    return pack(
        {
            "mimetype": ODT.encode(),
            "content.xml": (
                f"<office:document-content {SPACES}><office:automatic-styles>{STYLES}</office:automatic-styles>"
                f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
            ).encode(),
            "styles.xml": f"<office:document-styles {SPACES}>{masters}</office:document-styles>".encode(),
            "meta.xml": f"<office:document-meta {SPACES}><o>{meta}</o></office:document-meta>".encode(),
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>".encode(),
        }
    )


def extract(content, media_type=ODT):
    extraction = OdtExtractor().extract(RawDocument(content, "a.odt"), media_type, ExtractionSettings())
    for heading in extraction.headings:
        assert extraction.text[heading.start :].startswith(f"{'#' * heading.level} {heading.title}")
    return extraction


def test_headings_have_the_levels_of_their_outline_or_style():
    extraction = extract(
        odf(
            '<text:p text:style-name="P1">Guide</text:p><text:h text:outline-level="1">Scope</text:h>'
            '<text:p text:style-name="P2">Detail</text:p><text:p>Body.</text:p>'
        )
    )
    assert [(h.level, h.title) for h in extraction.headings] == [(1, "Guide"), (1, "Scope"), (2, "Detail")]
    assert extraction.text == "# Guide\n\n# Scope\n\n## Detail\n\nBody."
    assert extraction.title == "Guide"


def test_spaces_tabs_and_line_breaks_are_spelled_out():
    text = extract(
        odf('<text:p>a<text:s text:c="2"/>b<text:tab/>c<text:line-break/><text:span>d</text:span>e</text:p>')
    ).text
    assert text == "a  b\tc\nde"


def test_lists_are_nested_and_numbered():
    item = "<text:list-item><text:p>{}</text:p>{}</text:list-item>"
    inner = f"<text:list>{item.format('deeper', '')}</text:list>"
    outer = item.format("one", "") + item.format("two", inner)
    assert extract(odf(f'<text:list text:style-name="L1">{outer}</text:list>')).text == "1. one\n2. two\n  - deeper"


def test_numbered_heading_in_a_list_is_a_heading():
    body = '<text:list><text:list-item><text:h text:outline-level="2">Scope</text:h></text:list-item></text:list>'
    assert [h.title for h in extract(odf(body)).headings] == ["Scope"]


def test_table_keeps_header_repeats_and_merged_cells():
    def row(*cells):
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    def cell(text, more=""):
        return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"

    body = (
        f"<table:table><table:table-header-rows>{row(cell('Part'), cell('Price'))}</table:table-header-rows>"
        + row(cell("Bolt", 'table:number-rows-spanned="2"'), cell("12"))
        + row("<table:covered-table-cell/>", cell("14"))
        + row(cell("same", 'table:number-columns-repeated="2"'))
        + "</table:table>"
    )
    assert extract(odf(body)).text == "| Part | Price |\n| --- | --- |\n| Bolt | 12 |\n| Bolt | 14 |\n| same | same |"


def test_notes_and_comments_follow_the_text():
    body = "<text:note-body><text:p>Proof</text:p></text:note-body>"
    note = f"<text:note><text:note-citation>1</text:note-citation>{body}</text:note>"
    comment = "<office:annotation><dc:creator>Ada</dc:creator><text:p>Really?</text:p></office:annotation>"
    assert extract(odf(f"<text:p>Claim{note} stands{comment}.</text:p>")).text == (
        "Claim[1] stands.\n\n[1] Proof\n\nComments:\n- Ada: Really?"
    )


def test_note_in_a_table_cell_is_said_once():
    note = "<text:note><text:note-body><text:p>Proof</text:p></text:note-body></text:note>"
    cell = f"<table:table-cell><text:p>Claim{note}</text:p></table:table-cell>"
    assert (
        extract(odf(f"<table:table><table:table-row>{cell}</table:table-row></table:table>")).text
        == "Claim[1]\n\n[1] Proof"
    )


def test_words_in_an_element_of_an_unknown_kind_are_kept():
    assert extract(odf("<text:novelty><text:p>planted</text:p></text:novelty>")).text == "planted"


def test_deletions_contents_and_hidden_sections_are_left_out():
    text = extract(
        odf(
            "<text:tracked-changes><text:changed-region><text:deletion><text:p>DELETED</text:p></text:deletion>"
            "</text:changed-region></text:tracked-changes>"
            "<text:table-of-content><text:index-body><text:p>CONTENTS</text:p></text:index-body></text:table-of-content>"
            '<text:section text:display="none"><text:p>HIDDEN</text:p></text:section>'
            "<text:section><text:p>kept</text:p></text:section>"
        )
    ).text
    assert text == "kept"


def test_text_box_and_picture_description_follow_their_paragraph():
    frames = (
        "<draw:frame><draw:text-box><text:p>In the box</text:p></draw:text-box></draw:frame>"
        "<draw:frame><draw:image/><svg:desc>A red barn</svg:desc></draw:frame>"
    )
    assert (
        extract(odf(f"<text:p>Before{frames} after.</text:p>")).text == "Before after.\n\nIn the box\n\n![A red barn]"
    )


def test_headers_and_footers_follow_once_without_page_numbers():
    masters = (
        "<office:master-styles><style:master-page><style:header><text:p>SOP-7</text:p></style:header>"
        "<style:footer><text:p>Page <text:page-number>3</text:page-number></text:p></style:footer></style:master-page>"
        "<style:master-page><style:header><text:p>SOP-7</text:p></style:header></style:master-page></office:master-styles>"
    )
    assert extract(odf("<text:p>Text</text:p>", masters=masters)).text == "Text\n\nSOP-7"


def test_slides_are_parts_read_from_top_to_bottom_with_their_notes():
    def frame(y, text, more=""):
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f'<draw:frame svg:x="1cm" svg:y="{y}cm" {more}>{box}</draw:frame>'

    first = frame(9, "lower") + frame(3, "upper") + frame(1, "Intro", 'presentation:class="title"')
    notes = f"<presentation:notes>{frame(1, 'Say this')}</presentation:notes>"
    body = f"<draw:page>{first}{notes}</draw:page><draw:page/><draw:page>{frame(1, 'last')}</draw:page>"
    extraction = extract(odf(body, "presentation"), ODP)
    assert extraction.text == "# Intro\n\nupper\n\nlower\n\nNotes:\nSay this\n\nlast"
    assert [(p.kind, p.number, p.name) for p in extraction.parts] == [("slide", 1, "Intro"), ("slide", 3, None)]


def test_meta_becomes_title_and_metadata():
    meta = (
        "<dc:title>Real title</dc:title><meta:initial-creator>Ada</meta:initial-creator><dc:creator>Bob</dc:creator>"
        "<meta:creation-date>2024-05-06T07:08:09</meta:creation-date><meta:keyword>a</meta:keyword>"
        "<meta:keyword>b</meta:keyword>"
    )
    extraction = extract(odf("<text:p>x</text:p>", meta=meta))
    assert extraction.title == "Real title"
    assert extraction.metadata == {
        "author": "Ada",
        "last_modified_by": "Bob",
        "created": "2024-05-06T07:08:09",
        "keywords": "a, b",
    }


def test_absurd_repetition_in_a_table_is_capped():
    cell = '<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    assert len(extract(odf(f"<table:table>{row}</table:table>")).text) < 1_000_000


def refusal(content):
    with pytest.raises(BrokenDocument) as caught:
        extract(content)
    return caught.value.reason


def test_password_protected_document_is_told_apart():
    assert refusal(odf("", manifest="<encryption-data/>")) == "encrypted"


def nested(levels):
    body = "<text:p>x</text:p>"
    for _ in range(levels):
        body = f"<text:list><text:list-item>{body}</text:list-item></text:list>"
    return odf(body)


def test_deeply_nested_lists_are_read_or_refused_but_never_a_crash():
    assert extract(nested(120)).text.endswith("- x")
    assert refusal(nested(150)) == "too-deep"


def test_spreadsheet_under_the_wrong_name_is_damaged():
    assert refusal(odf("", "spreadsheet")) == "damaged"


def test_what_stands_on_every_slide_is_no_text_of_a_slide():
    def frame(kind, text):
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f'<draw:frame presentation:class="{kind}">{box}</draw:frame>'

    frames = frame("title", "Ropes") + frame("outline", "Tar") + frame("footer", "ACME") + frame("page-number", "7")
    slides = f'<draw:page draw:name="p1">{frames}{frame("date-time", "May 5")}</draw:page>'
    assert extract(odf(slides, "presentation"), ODP).text == "# Ropes\n\nTar"
