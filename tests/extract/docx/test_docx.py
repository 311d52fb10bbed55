"""Extraction from Word documents keeps words, structure and positions."""

import io
import zipfile

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract.docx.reader import DocxExtractor
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SPACES = (
    f'xmlns:w="{W}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
KINDS = ("styles", "numbering", "footnotes", "comments", "header", "footer")
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
STYLES = """
<w:style w:type="paragraph" w:styleId="Titre"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="Titre1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Titre2"><w:name w:val="heading 2"/></w:style>
<w:style w:type="paragraph" w:styleId="House"><w:name w:val="House"/><w:basedOn w:val="Titre2"/></w:style>
<w:style w:type="paragraph" w:styleId="TM1"><w:name w:val="toc 1"/></w:style>
"""
NUMBERING = """
<w:abstractNum w:abstractNumId="0">
 <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
 <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="1">
 <w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl>
 <w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="2">
 <w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="(%1)"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num>
"""


def docx(body, core="", **parts):
    """A Word document with the given XML in its parts."""
    parts = {"styles": STYLES, "numbering": NUMBERING, **parts}
    roots = {"header": "hdr", "footer": "ftr"}
    relations = "".join(f'<Relationship Id="{k}" Type="{OFFICE}{k}" Target="{k}.xml"/>' for k in KINDS)
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}"><Relationship Id="d" Type="{OFFICE}officeDocument" '
            'Target="/word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/_rels/document.xml.rels", f'<Relationships xmlns="{package}">{relations}</Relationships>'
        )
        archive.writestr("word/document.xml", f"<w:document {SPACES}><w:body>{body}</w:body></w:document>")
        for kind, inner in parts.items():
            root = roots.get(kind, kind)
            archive.writestr(f"word/{kind}.xml", f"<w:{root} {SPACES}>{inner}</w:{root}>")
        if core:
            archive.writestr(
                "docProps/core.xml",
                '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
                'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
                f"{core}</cp:coreProperties>",
            )
    return target.getvalue()


def p(text, style="", number="", extra=""):
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if number:
        list_id, _, depth = number.partition(":")
        properties += f'<w:numPr><w:ilvl w:val="{depth or 0}"/><w:numId w:val="{list_id}"/></w:numPr>'
    run = text if text.startswith("<") else f"<w:r><w:t>{text}</w:t></w:r>"
    return f"<w:p><w:pPr>{properties}{extra}</w:pPr>{run}</w:p>"


def extract(body, core="", **parts):
    document = RawDocument(docx(body, core, **parts), "a.docx")
    extraction = DocxExtractor().extract(document, DOCX, ExtractionSettings())
    for heading in extraction.headings:
        assert extraction.text[heading.start :].startswith(f"{'#' * heading.level} {heading.title}")
    return extraction


def test_headings_have_levels_and_places_in_any_language():
    extraction = extract(p("Guide", "Titre") + p("Scope", "Titre1") + p("Detail", "House") + p("Body text."))
    assert [(h.level, h.title) for h in extraction.headings] == [(1, "Guide"), (1, "Scope"), (2, "Detail")]
    assert extraction.text == "# Guide\n\n# Scope\n\n## Detail\n\nBody text."
    assert extraction.title == "Guide"


def test_paragraph_with_an_outline_level_of_its_own_is_a_heading():
    extraction = extract(p("Direct", extra='<w:outlineLvl w:val="2"/>'))
    assert [(h.level, h.title) for h in extraction.headings] == [(3, "Direct")]


def test_headings_and_clauses_keep_the_numbers_that_word_prints():
    """Users search for clause 2.1, but the number is not in the text of the file."""
    extraction = extract(
        p("First", "Titre1", "1") + p("Second", "Titre1", "1") + p("A clause.", "", "1:1") + p("Item.", "", "3")
    )
    assert [h.title for h in extraction.headings] == ["1. First", "2. Second"]
    assert "2.1 A clause." in extraction.text
    assert "(iii) Item." in extraction.text


def test_lists_are_nested_and_numbered():
    extraction = extract(
        p("one", "", "1") + p("two", "", "1") + p("Between.") + p("dot", "", "2") + p("deeper", "", "2:1")
    )
    assert "1. one\n2. two" in extraction.text
    assert "- dot\n  - deeper" in extraction.text


def test_table_keeps_its_header_row():
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:tcPr/>{p(cell)}</w:tc>" for cell in row) + "</w:tr>"
        for row in (("Name", "Price"), ("Bolt", "12"), ("Nut", "7"))
    )
    assert "| Name | Price |\n| --- | --- |\n| Bolt | 12 |\n| Nut | 7 |" in extract(f"<w:tbl>{rows}</w:tbl>").text


def test_table_whose_columns_are_years_keeps_its_header_row():
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:tcPr/>{p(cell)}</w:tc>" for cell in row) + "</w:tr>"
        for row in (("Part", "Unit", "2023", "2024"), ("Bolt", "%", "12.5", "7.0"), ("Nut", "kg", "7", "9"))
    )
    assert extract(f"<w:tbl>{rows}</w:tbl>").text == (
        "| Part | Unit | 2023 | 2024 |\n| --- | --- | --- | --- |\n| Bolt | % | 12.5 | 7.0 |\n| Nut | kg | 7 | 9 |"
    )


def test_heading_style_in_a_table_cell_is_no_heading():
    table = f"<w:tbl><w:tr><w:tc>{p('A', 'Titre1')}</w:tc><w:tc>{p('B')}</w:tc></w:tr></w:tbl>"
    extraction = extract(table)
    assert extraction.headings == ()
    assert "A" in extraction.text


def test_notes_follow_the_text_under_their_numbers():
    body = p("<w:r><w:t>Claim</w:t></w:r><w:r><w:footnoteReference w:id='7'/></w:r><w:r><w:t> stands.</w:t></w:r>")
    notes = (
        f'<w:footnote w:id="0" w:type="separator">{p("no")}</w:footnote><w:footnote w:id="7">{p("Proof")}</w:footnote>'
    )
    assert extract(body, footnotes=notes).text == "Claim[1] stands.\n\n[1] Proof"


def test_comments_and_running_heads_follow_once():
    extraction = extract(
        p("Text"),
        comments=f'<w:comment w:id="1" w:author="Ada">{p("Is this so?")}</w:comment>',
        header=p("SOP-123 rev 4") + p("SOP-123 rev 4"),
        footer=p("ACME Page 3 of 9") + p("17"),
    )
    assert extraction.text == "Text\n\nComments:\n- Ada: Is this so?\n\nSOP-123 rev 4\nACME"


def test_deleted_and_hidden_words_and_contents_are_left_out():
    body = (
        p("<w:r><w:t>kept </w:t></w:r><w:del><w:r><w:delText>DELETED</w:delText></w:r></w:del>"
          "<w:ins><w:r><w:t>inserted</w:t></w:r></w:ins><w:r><w:rPr><w:vanish/></w:rPr><w:t>HIDDEN</w:t></w:r>")
        + p("Scope 3", "TM1")
    )  # fmt: skip
    assert extract(body).text == "kept inserted"


def test_words_are_not_torn_where_word_starts_a_new_run():
    runs = "".join(f"<w:r w:rsidR='{n}'><w:rPr><w:b/></w:rPr><w:t>{part}</w:t></w:r>" for n, part in enumerate("abc"))
    assert extract(p(runs)).text == "abc"


def test_text_box_link_formula_and_picture_keep_their_words():
    box = f"<wps:txbx><w:txbxContent>{p('In the box')}</w:txbxContent></wps:txbx>"
    drawing = f'<w:drawing><wp:inline><wp:docPr id="1" name="x" descr="A red barn"/>{box}</wp:inline></w:drawing>'
    choice = f"<mc:AlternateContent><mc:Choice Requires='wps'>{drawing}</mc:Choice></mc:AlternateContent>"
    formula = (
        "<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>"
    )
    text = extract(
        p(f"<w:r>{choice}</w:r>") + p(f'<w:hyperlink r:id="gone"><w:r><w:t>a link</w:t></w:r></w:hyperlink>{formula}')
    ).text
    assert "In the box" in text
    assert "A red barn" in text
    assert "a link(a+b)/2" in text


def test_core_properties_become_title_and_metadata():
    core = (
        "<dc:title>Real title</dc:title><dc:creator>Ada</dc:creator><dc:subject>Bolts</dc:subject>"
        "<dcterms:created>2024-05-06T07:08:09Z</dcterms:created>"
    )
    extraction = extract(p("Heading", "Titre1"), core)
    assert extraction.title == "Real title"
    assert extraction.metadata == {"author": "Ada", "subject": "Bolts", "created": "2024-05-06T07:08:09Z"}


def test_title_that_a_program_filled_in_gives_way_to_the_first_heading():
    assert extract(p("Heading", "Titre1"), "<dc:title>Document1</dc:title>").title == "Heading"


@pytest.mark.parametrize("body", ["<w:p>", p("<w:r><w:t>x</w:t></w:r><w:tbl><w:tr><w:tc/></w:tr>")])
def test_document_with_broken_xml_is_damaged(body):
    with pytest.raises(BrokenDocument) as caught:
        extract(body)
    assert caught.value.reason == "damaged"


def test_archive_without_a_word_document_is_damaged():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("readme.txt", "no")
    with pytest.raises(BrokenDocument, match="no Word document"):
        DocxExtractor().extract(RawDocument(target.getvalue(), "a.docx"), DOCX, ExtractionSettings())


def test_tables_nested_too_deeply_are_refused_and_not_a_crash():
    body = p("x")
    for _ in range(79):
        body = f"<w:tbl><w:tr><w:tc>{body}</w:tc></w:tr></w:tbl>"
    with pytest.raises(BrokenDocument) as caught:
        extract(body)
    assert caught.value.reason == "too-deep"
