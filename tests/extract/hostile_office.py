"""Office files that cost a reader more than their size: name -> function of a size in bytes, unpacked."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

from tests.extract.hostile_data import File, Hostile, times

_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
ODF = "urn:oasis:names:tc:opendocument:xmlns"


def zipped(members: Mapping[str, str | bytes], name: str) -> File:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content, compress_type=zipfile.ZIP_STORED if member == "mimetype" else None)
    return (target.getvalue(), name)


def relations(*related: tuple[str, str, str]) -> str:
    """A relationships part: id, last word of the type, target."""
    entries = (f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>' for key, kind, target in related)
    return f'<Relationships xmlns="{_RELATIONS}">{"".join(entries)}</Relationships>'


def types(*parts: tuple[str, str]) -> str:
    known = "".join(f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in parts)
    return (
        f'<Types xmlns="{_TYPES}"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{known}</Types>'
    )


# --- Word


def docx(body: str, parts: Mapping[str, str] | None = None, related: tuple[tuple[str, str, str], ...] = ()) -> File:
    """A document with the given body and additional parts."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    spaces = f'xmlns:w="{_W}" xmlns:m="{_M}" xmlns:mc="{_MC}" xmlns:r="{OFFICE}" xmlns:c="{_C}"'
    return zipped(
        {
            "[Content_Types].xml": types(("/word/document.xml", kind)),
            "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(*related),
            "word/document.xml": f"<w:document {spaces}><w:body>{body}</w:body></w:document>",
            **{f"word/{name}": text for name, text in (parts or {}).items()},
        },
        "text.docx",
    )


def paragraph(text: str = "x", inside: str = "") -> str:
    return f"<w:p>{inside}<w:r><w:t>{text}</w:t></w:r></w:p>"


def _nested(opened: str, closed: str, depth: int, inside: str) -> str:
    return opened * depth + inside + closed * depth


def docx_tables(depth: int) -> File:
    return docx(_nested("<w:tbl><w:tr><w:tc>", "<w:p/></w:tc></w:tr></w:tbl>", depth, paragraph()))


def _docx_formulas(depth: int) -> File:
    inner = _nested("<m:f><m:num>", "</m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>", depth,
                    "<m:r><m:t>1</m:t></m:r>")  # fmt: skip
    return docx(f"<w:p><m:oMath>{inner}</m:oMath></w:p>")


def _docx_alternatives(depth: int) -> File:
    opened = "<mc:AlternateContent><mc:Choice><w:r><w:t>x</w:t></w:r>"
    return docx(f"<w:p>{_nested(opened, '</mc:Choice></mc:AlternateContent>', depth, '')}</w:p>")


def docx_numbers(start: int, kind: str, count: int, text: str = "%1.") -> File:
    """Numbered headings with a high start number."""
    level = f'<w:lvl w:ilvl="0"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'
    numbering = (
        f'<w:numbering xmlns:w="{_W}"><w:abstractNum w:abstractNumId="0">{level}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'
    )
    said = '<w:pPr><w:outlineLvl w:val="0"/><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>'
    return docx(paragraph("x", said) * count, {"numbering.xml": numbering}, (("r1", "numbering", "numbering.xml"),))


def _docx_notes(size: int) -> File:
    notes = (
        f'<w:footnotes xmlns:w="{_W}"><w:footnote w:id="1">{paragraph("x" * (size // 2))}</w:footnote></w:footnotes>'
    )
    body = "<w:p>" + times('<w:r><w:footnoteReference w:id="1"/></w:r>', size // 2) + "</w:p>"
    return docx(body, {"footnotes.xml": notes}, (("r1", "footnotes", "footnotes.xml"),))


def chart(size: int, kind: str = "c") -> str:
    points = times('<c:pt idx="{n}"><c:v>1</c:v></c:pt>', size)
    return (
        f'<c:chartSpace xmlns:c="{_C}"><c:chart><c:ser><c:tx><c:v>s</c:v></c:tx><c:val><c:numCache>{points}'
        "</c:numCache></c:val></c:ser></c:chart></c:chartSpace>"
    )


def _docx_charts(size: int) -> File:
    drawings = times('<w:drawing><c:chart r:id="r1"/></w:drawing>', size // 2)
    return docx(f"<w:p><w:r>{drawings}</w:r></w:p>", {"c.xml": chart(size // 2)}, (("r1", "chart", "c.xml"),))


def _docx_related(kind: str, name: str, part: Callable[[int], str]) -> Hostile:
    """Many relationships, with different ids, to one part."""

    def make(size: int) -> File:
        related = tuple((f"r{n}", kind, name) for n in range(size // 2 // 150))
        return docx(paragraph(), {name: part(size // 2)}, related)

    return make


def _many_parts(size: int) -> File:
    return docx(paragraph(), {f"{n}.xml": "" for n in range(min(19_000, size // 100))})


# --- presentations


def pptx(shapes: str, *, slides: int = 1, parts: Mapping[str, str] | None = None, related: str = "") -> File:
    """A presentation with one slide, which may be listed more than once."""
    kind = "application/vnd.openxmlformats-officedocument.presentationml"
    group = (
        '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    )  # fmt: skip
    listed = "".join(f'<p:sldId id="{256 + n}" r:id="r1"/>' for n in range(slides))
    spaces = f'xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{OFFICE}" xmlns:c="{_C}"'
    return zipped(
        {
            "[Content_Types].xml": types(
                ("/ppt/presentation.xml", f"{kind}.presentation.main+xml"),
                ("/ppt/slides/slide1.xml", f"{kind}.slide+xml"),
            ),
            "_rels/.rels": relations(("r1", "officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(("r1", "slide", "slides/slide1.xml")),
            "ppt/slides/slide1.xml": f"<p:sld {spaces}><p:cSld><p:spTree>{group}{shapes}</p:spTree></p:cSld></p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": related or relations(),
            **(parts or {}),
        },
        "slides.pptx",
    )  # fmt: skip


def shape(text: str = "x", paragraph_properties: str = "") -> str:
    return (
        '<p:sp><p:nvSpPr><p:cNvPr id="2" name="s"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>'
        f"<a:p>{paragraph_properties}<a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def pptx_groups(depth: int) -> File:
    opened = '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="3" name="g"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    return pptx(_nested(opened, "</p:grpSp>", depth, shape()))


def _frame(inside: str, uri: str) -> str:
    return (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="4" name="f"/><p:cNvGraphicFramePr/><p:nvPr/>'
        f'</p:nvGraphicFramePr><p:xfrm/><a:graphic><a:graphicData uri="{uri}">{inside}</a:graphicData></a:graphic>'
        "</p:graphicFrame>"
    )


def pptx_table(rows: str, columns: int) -> File:
    grid = '<a:gridCol w="1"/>' * columns
    table = f"<a:tbl><a:tblPr/><a:tblGrid>{grid}</a:tblGrid>{rows}</a:tbl>"
    return pptx(_frame(table, "http://schemas.openxmlformats.org/drawingml/2006/table"))


def _pptx_wide_row(size: int) -> File:
    filled = "<a:tc><a:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></a:txBody></a:tc>"
    count = size // 2 // len(filled)
    return pptx_table(f'<a:tr h="1">{filled * count}</a:tr>' + f'<a:tr h="1">{filled}</a:tr>' * count, count)


def _pptx_merged(size: int) -> File:
    long = f"<a:tc rowSpan='9'><a:txBody><a:p><a:r><a:t>{'x' * (size // 2)}</a:t></a:r></a:p></a:txBody></a:tc>"
    covered = "<a:tr h='1'><a:tc vMerge='1'><a:txBody><a:p/></a:txBody></a:tc></a:tr>"
    return pptx_table(f"<a:tr h='1'>{long}</a:tr>" + times(covered, size // 2), 1)


def pptx_chart(part: str, frames: int = 1) -> File:
    kind = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    return pptx(
        _frame('<c:chart r:id="r1"/>', kind) * frames,
        parts={"ppt/charts/chart1.xml": part},
        related=relations(("r1", "chart", "../charts/chart1.xml")),
    )


def chart_of_levels(levels: str) -> str:
    """A chart with categories in the given number of levels, innermost first."""
    return (
        f'<c:chartSpace xmlns:c="{_C}"><c:chart><c:ser><c:cat><c:multiLvlStrCache>{levels}</c:multiLvlStrCache></c:cat>'
        '<c:val><c:numCache><c:pt idx="0"><c:v>1</c:v></c:pt></c:numCache></c:val></c:ser></c:chart></c:chartSpace>'
    )


def level(*places: int) -> str:
    points = "".join(f'<c:pt idx="{at}"><c:v>x</c:v></c:pt>' for at in places)
    return f"<c:lvl>{points}</c:lvl>"


# --- OpenDocument


def odt(body: str, styles: str = "") -> File:
    spaces = " ".join(f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "table", "text", "drawing", "style"))
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {spaces}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
            "</office:document-content>",
        },
        "text.odt",
    )


def odt_repeated(columns: int, rows: int, text: str, times_: int = 1) -> File:
    one = f'<table:table-cell table:number-columns-repeated="{columns}"><text:p>{text}</text:p></table:table-cell>'
    repeated = f'<table:table-row table:number-rows-repeated="{rows}">{one}</table:table-row>'
    return odt(f"<table:table>{repeated}</table:table>" * times_)


def odt_covered(count: int, text: str) -> File:
    covered = "<table:table-row><table:covered-table-cell/></table:table-row>" * count
    first = f"<table:table-row><table:table-cell><text:p>{text}</text:p></table:table-cell></table:table-row>"
    return odt(f"<table:table>{first}{covered}</table:table>")


def odt_lists(depth: int) -> File:
    return odt(_nested("<text:list><text:list-item>", "</text:list-item></text:list>", depth, "<text:p>x</text:p>"))


CLASSES: dict[str, Hostile] = {
    "docx-nested-tables": lambda size: docx_tables(min(200, size // 50)),
    "docx-very-nested-tables": lambda size: docx_tables(size // 50),
    "docx-nested-formulas": lambda size: _docx_formulas(min(80, size // 50)),
    "docx-nested-alternatives": lambda size: _docx_alternatives(min(120, size // 90)),
    "docx-paragraphs": lambda size: docx(times(paragraph(), size)),
    "docx-runs": lambda size: docx("<w:p>" + times("<w:r><w:t>x</w:t></w:r>", size) + "</w:p>"),
    "docx-tabs": lambda size: docx("<w:p>" + times("<w:r><w:tab/></w:r>", size) + "</w:p>"),
    "docx-formulas": lambda size: docx("<w:p>" + times("<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>", size) + "</w:p>"),
    "docx-tables": lambda size: docx(times(f"<w:tbl><w:tr><w:tc>{paragraph()}</w:tc></w:tr></w:tbl>", size)),
    "docx-wide-row": lambda size: docx(
        "<w:tbl><w:tr>" + times(f"<w:tc>{paragraph()}</w:tc>", size // 2) + "</w:tr>"
        + times(f"<w:tr><w:tc>{paragraph()}</w:tc></w:tr>", size // 2) + "</w:tbl>"
    ),
    "docx-spans": lambda size: docx(
        "<w:tbl>" + times('<w:tr><w:tc><w:tcPr><w:gridSpan w:val="1000000"/></w:tcPr>' + paragraph() + "</w:tc></w:tr>",
                          size) + "</w:tbl>"
    ),
    "docx-merged-rows": lambda size: docx(
        "<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>" + paragraph("x" * (size // 2))
        + "</w:tc></w:tr>" + times("<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr>", size // 2)
        + "</w:tbl>"
    ),
    "docx-letters": lambda size: docx_numbers(999_999, "lowerLetter", max(1, size // 130)),
    "docx-roman": lambda size: docx_numbers(999_999, "upperRoman", max(1, size // 130)),
    "docx-long-labels": lambda size: docx_numbers(1, "decimal", max(1, size // 260), "%1" * (size // 4)),
    "docx-notes": _docx_notes,
    "docx-charts": _docx_charts,
    "docx-headers": _docx_related(
        "header", "header.xml", lambda size: f'<w:hdr xmlns:w="{_W}">{times(paragraph(), size)}</w:hdr>'
    ),
    "docx-html": _docx_related("aFChunk", "a.html", lambda size: f"<p>{times('x ', size)}</p>"),
    "docx-parts": _many_parts,
    "docx-bomb": lambda size: docx(paragraph("x" * 1000 * size)),
    "pptx-nested-groups": lambda size: pptx_groups(min(200, size // 100)),
    "pptx-very-nested-groups": lambda size: pptx_groups(size // 100),
    "pptx-shapes": lambda size: pptx(times(shape(), size)),
    "pptx-slides-of-one-part": lambda size: pptx(times(shape(), size // 2), slides=size // 2 // 30),
    "pptx-level": lambda _: pptx(shape("x", '<a:pPr lvl="1000000000"/>')),
    "pptx-levels": lambda size: pptx(times(shape("x", '<a:pPr lvl="10000"/>'), size)),
    "pptx-wide-row": _pptx_wide_row,
    "pptx-merged": _pptx_merged,
    "pptx-charts-of-one-part": lambda size: pptx_chart(chart(size // 2), frames=size // 2 // 250),
    "pptx-chart-place": lambda _: pptx_chart(chart_of_levels(level(1_000_000_000) + level(1_000_000_000 + 1))),
    "pptx-chart-levels": lambda size: pptx_chart(chart_of_levels(level(0) * (size // 50))),
    "pptx-chart-points": lambda size: pptx_chart(
        chart_of_levels(level(*range(1, size // 80)) + level(size // 80))
    ),
    "odt-nested-lists": lambda size: odt_lists(min(100, size // 60)),
    "odt-very-nested-lists": lambda size: odt_lists(size // 60),
    "odt-repeated": lambda size: odt_repeated(200, 200, "x" * 1000, max(1, size // 1300)),
    "odt-covered": lambda size: odt_covered(max(1, size // 2 // 70), "x" * (size // 2)),
    "odt-wide-row": lambda size: odt(
        "<table:table><table:table-row>" + times("<table:table-cell><text:p>x</text:p></table:table-cell>", size // 2)
        + "</table:table-row>"
        + times("<table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>", size // 2)
        + "</table:table>"
    ),
    "odt-spaces": lambda size: odt("<text:p>x" + times('<text:s text:c="99999"/>', size) + "x</text:p>"),
    "odt-no-number": lambda _: odt('<text:p>x<text:s text:c="²"/>x</text:p>'),
    "odt-long-number": lambda _: odt(f'<text:p>x<text:s text:c="{"9" * 5000}"/>x</text:p>'),
    "odt-levels": lambda _: odt('<text:h text:outline-level="²">x</text:h>'),
    "odt-paragraphs": lambda size: odt(times("<text:p>x</text:p>", size)),
    "odt-notes": lambda size: odt(
        "<text:p>" + times("<text:note><text:note-body><text:p>x</text:p></text:note-body></text:note>", size)
        + "</text:p>"
    ),
    "odt-nested-notes": lambda size: odt(
        "<text:p>" + _nested("<text:note><text:note-body><text:p>", "</text:p></text:note-body></text:note>",
                             min(80, size // 80), "x") + "</text:p>"
    ),
}  # fmt: skip
