"""The forms of a made document that are packed or binary: office files, PDF, mail, e-books."""

from __future__ import annotations

import html
import io
import zipfile
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any

import xlsxwriter
from pptx import Presentation
from pptx.util import Inches
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import ListFlowable, Paragraph, SimpleDocTemplate, Spacer
from reportlab.platypus import Table as PdfTable

from benchmarks.formats_made import Document, as_html, html_page, rows_of
from benchmarks.formats_made import Table as MadeTable
from tests.files.msg_writer import BODY, HTML, SENDER, SENDER_ADDRESS, SUBJECT, TO, msg

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMES = {
    name: f"{_ODF}{name if name != 'draw' else 'drawing'}:1.0"
    for name in ("office", "text", "table", "draw", "presentation")
}


def _zip(members: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            kept = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0)), text, kept)
    return packed.getvalue()


def docx(document: Document) -> bytes:
    def paragraph(text: str, style: str = "") -> str:
        within = f"<w:pPr>{style}</w:pPr>" if style else ""
        return f'<w:p>{within}<w:r><w:t xml:space="preserve">{html.escape(text)}</w:t></w:r></w:p>'

    def table(table: MadeTable) -> str:
        rows = (f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in rows_of(table))
        return f"<w:tbl><w:tblPr/><w:tblGrid/>{''.join(rows)}</w:tbl>"

    bullet = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    parts = [paragraph(document.title, '<w:pStyle w:val="Heading1"/>')]
    for section in document.sections:
        parts.append(paragraph(section.heading, '<w:pStyle w:val="Heading2"/>'))
        parts += [paragraph(text) for text in section.paragraphs]
        parts += [paragraph(item, bullet) for item in section.items]
        parts += [paragraph(section.table.caption), table(section.table)]
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    level = '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="-"/></w:lvl>'
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{level}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{kind}.{part}+xml"/>'
        for name, part in (("document", "document.main"), ("styles", "styles"), ("numbering", "numbering"))
    )
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'

    def relations(*targets: tuple[str, str]) -> str:
        listed = "".join(
            f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
            for number, (kind, target) in enumerate(targets)
        )
        return f'<Relationships xmlns="{_RELATIONS}">{listed}</Relationships>'

    return _zip({
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}">{rels}{overrides}</Types>',
        "_rels/.rels": relations(("officeDocument", "word/document.xml")),
        "word/_rels/document.xml.rels": relations(("styles", "styles.xml"), ("numbering", "numbering.xml")),
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{"".join(parts)}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{_WORD}">{numbering}</w:numbering>',
    })  # fmt: skip


def _open_document(kind: str, body: str, within: str) -> bytes:
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    names = " ".join(f'xmlns:{name}="{uri}"' for name, uri in _NAMES.items())
    root = "manifest:manifest"
    manifest = f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{media_type}"/>'
    content = f"<office:body><office:{within}>{body}</office:{within}></office:body>"
    return _zip({
        "mimetype": media_type,
        "META-INF/manifest.xml": f'<{root} xmlns:manifest="{_ODF}manifest:1.0">{manifest}</{root}>',
        "content.xml": f"<office:document-content {names}>{content}</office:document-content>",
    })  # fmt: skip


def _odf_table(table: MadeTable) -> str:
    def row(cells: tuple[str, ...]) -> str:
        inner = "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>' for cell in cells
        )
        return f"<table:table-row>{inner}</table:table-row>"

    return f'<table:table table:name="{table.caption}">{"".join(map(row, rows_of(table)))}</table:table>'


def odt(document: Document) -> bytes:
    parts = [f'<text:h text:outline-level="1">{document.title}</text:h>']
    for section in document.sections:
        parts.append(f'<text:h text:outline-level="2">{section.heading}</text:h>')
        parts += [f"<text:p>{text}</text:p>" for text in section.paragraphs]
        items = "".join(f"<text:list-item><text:p>{item}</text:p></text:list-item>" for item in section.items)
        parts += [f"<text:list>{items}</text:list><text:p>{section.table.caption}</text:p>", _odf_table(section.table)]
    return _open_document("text", "".join(parts), "text")


def ods(document: Document) -> bytes:
    return _open_document("spreadsheet", "".join(map(_odf_table, document.tables)), "spreadsheet")


def odp(document: Document) -> bytes:
    def frame(inner: str) -> str:
        return f"<draw:frame>{inner}</draw:frame>"

    def box(*lines: str) -> str:
        return frame(f"<draw:text-box>{''.join(f'<text:p>{line}</text:p>' for line in lines)}</draw:text-box>")

    pages = [f'<draw:page draw:name="p0">{box(document.title)}</draw:page>']
    for number, section in enumerate(document.sections, 1):
        inner = box(section.heading) + box(*section.paragraphs, *section.items, section.table.caption)
        pages.append(f'<draw:page draw:name="p{number}">{inner}{frame(_odf_table(section.table))}</draw:page>')
    return _open_document("presentation", "".join(pages), "presentation")


def pptx(document: Document) -> bytes:
    shown = Presentation()
    first = shown.slides.add_slide(shown.slide_layouts[5])
    first.shapes.title.text = document.title
    for section in document.sections:
        slide = shown.slides.add_slide(shown.slide_layouts[1])
        slide.shapes.title.text = section.heading
        slide.placeholders[1].text = "\n".join((*section.paragraphs, *section.items, section.table.caption))
        rows = rows_of(section.table)
        place = (Inches(1), Inches(5), Inches(8), Inches(2))
        table = slide.shapes.add_table(len(rows), len(rows[0]), *place).table
        for line, row in enumerate(rows):
            for column, cell in enumerate(row):
                table.cell(line, column).text = cell
    packed = io.BytesIO()
    shown.save(packed)
    return packed.getvalue()


def xlsx(document: Document) -> bytes:
    """Return a sheet for each table: numbers with a format of thousands, which a reader sees as in the document."""
    packed = io.BytesIO()
    book = xlsxwriter.Workbook(packed, {"in_memory": True})
    number = book.add_format({"num_format": "#,##0.0"})
    bold = book.add_format({"bold": True})
    for table in document.tables:
        sheet = book.add_worksheet(table.caption)
        sheet.write_row(0, 0, table.header, bold)
        for line, row in enumerate(table.rows, 1):
            sheet.write_row(line, 0, row[:2])
            for column, cell in enumerate(row[2:], 2):
                sheet.write_number(line, column, float(cell.replace(",", "")), number)
    book.close()
    return packed.getvalue()


def ruled_pdf(document: Document) -> bytes:
    """Return a PDF whose cells are divided by rules, and whose first column wraps."""
    return _pdf(document, ruled=True)


def plain_pdf(document: Document) -> bytes:
    """Return a PDF whose tables have no rules."""
    return _pdf(document, ruled=False)


def _pdf(document: Document, *, ruled: bool) -> bytes:
    styles = getSampleStyleSheet()
    style = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)] if ruled else []
    parts: list[Any] = [Paragraph(document.title, styles["Heading1"])]
    for section in document.sections:
        parts.append(Paragraph(section.heading, styles["Heading2"]))
        parts += [Paragraph(text, styles["Normal"]) for text in section.paragraphs]
        parts.append(ListFlowable([Paragraph(item, styles["Normal"]) for item in section.items], bulletType="bullet"))
        parts += [Paragraph(section.table.caption, styles["Normal"]), Spacer(1, 6)]
        rows = [[Paragraph(row[0], styles["Normal"]) if ruled else row[0], *row[1:]] for row in rows_of(section.table)]
        parts += [PdfTable(rows, [60 if ruled else 130, *[70] * (len(rows[0]) - 1)], style=style), Spacer(1, 12)]
    packed = io.BytesIO()
    SimpleDocTemplate(packed, title=document.title, invariant=1).build(parts)
    return packed.getvalue()


def epub(document: Document) -> bytes:
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    told = f'<metadata {dc}><dc:title>{document.title}</dc:title><dc:identifier id="i">1</dc:identifier></metadata>'
    items = '<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
    package = f'<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">{told}{items}'
    chapter = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{as_html(document)}</body></html>'
    return _zip({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "book.opf": f'{package}<spine><itemref idref="c"/></spine></package>',
        "c.xhtml": chapter,
    })  # fmt: skip


def eml(document: Document) -> bytes:
    """Return a mail in both versions that mail programs write: HTML, and text with every cell on a line of its own."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = document.title, "ann@example.org", "bob@example.org"
    mail.set_content(_plain_letter(document))
    mail.add_alternative(_letter(document), subtype="html")
    mail.set_boundary("made-boundary")
    return mail.as_bytes()


def outlook(document: Document) -> bytes:
    return msg(
        {
            SUBJECT: document.title,
            SENDER: "ann@example.org",
            SENDER_ADDRESS: "ann@example.org",
            TO: "bob@example.org",
            BODY: _plain_letter(document),
            HTML: _letter(document).encode(),
        }
    )


def _plain_letter(document: Document) -> str:
    lines = []
    for section in document.sections:
        lines += [section.heading, *section.paragraphs, *(f"* {item}" for item in section.items), section.table.caption]
        lines += [cell for row in rows_of(section.table) for cell in row]
    return "\n\n".join(lines)


def _letter(document: Document) -> str:
    inner = as_html(document).partition("</h1>")[2]
    return f'<html><head><meta charset="utf-8"></head><body>{inner}</body></html>'


def mhtml(document: Document) -> bytes:
    page = EmailMessage()
    page["Subject"], page["Snapshot-Content-Location"] = document.title, "https://example.org/report"
    page.set_content(html_page(document), subtype="html")
    page.add_header("Content-Location", "https://example.org/report")
    page.make_mixed(boundary="made-boundary")
    page.set_type("multipart/related")
    return page.as_bytes()
