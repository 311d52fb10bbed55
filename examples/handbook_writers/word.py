"""DOCX: the parts of a word processor's file, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from .archive import archive
from .source import EDITION, Block, Heading, Items, Manuscript, Note, Paragraph, Table

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_BULLET, _NUMBER = 1, 2


def write_docx(manuscript: Manuscript) -> bytes:
    """The manuscript as a DOCX with heading styles, numbering and document properties."""
    body = "".join(_block(block) for page in manuscript.pages() for block in page)
    return archive(
        {
            "[Content_Types].xml": _content_types(),
            "_rels/.rels": _relations(
                ("officeDocument", "word/document.xml"),
                ("metadata/core-properties", "docProps/core.xml"),
            ),
            "docProps/core.xml": _core_properties(manuscript),
            "word/_rels/document.xml.rels": _relations(("styles", "styles.xml"), ("numbering", "numbering.xml")),
            "word/document.xml": f"{_DECLARATION}<w:document {_W}><w:body>{body}<w:sectPr/></w:body></w:document>",
            "word/numbering.xml": _numbering(),
            "word/styles.xml": _styles(),
        }
    )


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return _paragraph(text, f'<w:pStyle w:val="Heading{level}"/>')
        case Paragraph() | Note():
            return _paragraph(block.text)
        case Items(texts, ordered):
            number = _NUMBER if ordered else _BULLET
            style = (
                f'<w:pStyle w:val="ListParagraph"/><w:numPr><w:ilvl w:val="0"/><w:numId w:val="{number}"/></w:numPr>'
            )
            return "".join(_paragraph(text, style) for text in texts)
        case Table(rows):
            return _table(rows)


def _paragraph(text: str, properties: str = "") -> str:
    shown = f"<w:pPr>{properties}</w:pPr>" if properties else ""
    return f'<w:p>{shown}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    edges = "".join(
        f'<w:{edge} w:val="single" w:sz="4" w:space="0" w:color="808080"/>'
        for edge in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    grid = "".join('<w:gridCol w:w="2800"/>' for _ in rows[0])
    shown = ""
    for number, row in enumerate(rows):
        repeat = "<w:trPr><w:tblHeader/></w:trPr>" if number == 0 else ""
        shown += f"<w:tr>{repeat}{''.join(f'<w:tc>{_paragraph(cell)}</w:tc>' for cell in row)}</w:tr>"
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/><w:tblBorders>{edges}</w:tblBorders></w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid>{shown}</w:tbl><w:p/>"
    )


def _content_types() -> str:
    overrides = {
        "/word/document.xml": f"{_TYPES}.document.main+xml",
        "/word/styles.xml": f"{_TYPES}.styles+xml",
        "/word/numbering.xml": f"{_TYPES}.numbering+xml",
        "/docProps/core.xml": "application/vnd.openxmlformats-package.core-properties+xml",
    }
    shown = "".join(f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in overrides.items())
    return (
        f'{_DECLARATION}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{shown}</Types>'
    )


def _relations(*relations: tuple[str, str]) -> str:
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    shown = ""
    for number, (kind, target) in enumerate(relations, start=1):
        base = package if "/" in kind else _RELATIONS
        shown += f'<Relationship Id="rId{number}" Type="{base}/{kind}" Target="{target}"/>'
    return f'{_DECLARATION}<Relationships xmlns="{package}">{shown}</Relationships>'


def _core_properties(manuscript: Manuscript) -> str:
    when = EDITION.strftime("%Y-%m-%dT%H:%M:%SZ")
    moments = "".join(
        f'<dcterms:{name} xsi:type="dcterms:W3CDTF">{when}</dcterms:{name}>' for name in ("created", "modified")
    )
    return (
        f"{_DECLARATION}<cp:coreProperties "
        'xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(manuscript.title)}</dc:title><dc:creator>{escape(manuscript.author)}</dc:creator>"
        f"{moments}</cp:coreProperties>"
    )


def _numbering() -> str:
    kinds = {_BULLET: ("bullet", "•"), _NUMBER: ("decimal", "%1.")}
    abstract = "".join(
        f'<w:abstractNum w:abstractNumId="{number}"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
        f'<w:lvlText w:val="{mark}"/><w:pPr><w:ind w:left="720" w:hanging="360"/></w:pPr></w:lvl></w:abstractNum>'
        for number, (form, mark) in kinds.items()
    )
    concrete = "".join(f'<w:num w:numId="{number}"><w:abstractNumId w:val="{number}"/></w:num>' for number in kinds)
    return f"{_DECLARATION}<w:numbering {_W}>{abstract}{concrete}</w:numbering>"


def _styles() -> str:
    headings = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        f'<w:basedOn w:val="Normal"/><w:pPr><w:spacing w:before="240" w:after="80"/>'
        f'<w:outlineLvl w:val="{level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="{44 - 8 * level}"/></w:rPr></w:style>'
        for level in (1, 2, 3)
    )
    return (
        f'{_DECLARATION}<w:styles {_W}><w:style w:type="paragraph" w:default="1" w:styleId="Normal">'
        '<w:name w:val="Normal"/><w:pPr><w:spacing w:after="120"/></w:pPr></w:style>'
        f'{headings}<w:style w:type="paragraph" w:styleId="ListParagraph"><w:name w:val="List Paragraph"/>'
        '<w:basedOn w:val="Normal"/></w:style></w:styles>'
    )
