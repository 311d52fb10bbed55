"""Rewrites a Word document as a small plain one that mammoth converts to HTML quickly, without losing words.

Content that mammoth would drop is moved to where mammoth reads it: formulas, text boxes without a legacy copy,
alternative texts, charts, headings defined only by their outline level, the numbers that Word prints before headings
and clauses. Everything else that mammoth does not need (formatting, links, pictures, hidden text, tables of contents)
is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from parquetry.extract.docx.math import linear_formula
from parquetry.extract.docx.parts import WordParts, words
from parquetry.extract.docx.styles import Numbering, Styles, attribute
from parquetry.extract.package import pack
from parquetry.extract.shapes import chart_table, telling

HEADING_STYLE = "ParquetryHeading"
"""prefix of the style id of every heading, followed by its level"""

_CONTENT_TYPES = (
    b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="xml" ContentType="application/xml"/></Types>'
)
_RELATIONS = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="main" '
    b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    b'Target="word/document.xml"/></Relationships>'
)
_NOT_TEXT = (
    *("sectPr", "proofErr", "bookmarkStart", "bookmarkEnd", "lastRenderedPageBreak", "commentRangeStart"),
    *("commentRangeEnd", "commentReference", "rPrChange", "pPrChange", "tblPr", "tblGrid", "tblPrEx", "tcW"),
    *("tcBorders", "tcMar", "shd", "vAlign", "imagedata", "altChunk", "rt", "rubyPr", "instrText", "checkbox"),
)
_WRAPPERS = ("hyperlink", "smartTag", "fldSimple", "customXml", "bdo", "dir", "ruby", "rubyBase")
_FALSE = frozenset({"0", "false", "off"})
_LIST_LABEL = re.compile(r"\d+[.)]?")
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"


class Simplifier:
    """Rewrites one document.

    Args:
        parts: the document; its main part is changed in place.
    """

    def __init__(self, parts: WordParts) -> None:
        self._parts = parts
        self._root = parts.root
        self._w = self._root.tag.rpartition("}")[0] + "}"
        self._drawn: set[tuple[str, str | None]] = set()
        self.notes: list[str] = []
        """footnotes and endnotes in the order of their first reference, which is the order of their numbers in the
        text"""
        self.title: str | None = None
        """text in the title style"""
        self.first_heading: str | None = None
        """text of the first level-1 heading"""

    def simplify(self) -> bytes:
        """Return a Word document with the same words and structure."""
        from lxml import etree

        self._draw_checkboxes()
        for element in list(self._root.iter(*(f"{{*}}{name}" for name in _NOT_TEXT))):
            element.getparent().remove(element)
        self._settle_alternatives()
        self._flatten_drawings()
        for formula in list(self._root.iter("{*}oMathPara", "{*}oMath")):
            if formula.getparent() is not None and not _inside(formula, "{*}oMathPara"):
                _replace(formula, self._run(linear_formula(formula)))
        for wrapper in list(self._root.iter(*(f"{self._w}{name}" for name in _WRAPPERS))):
            _replace(wrapper, *wrapper)
        self._number_notes()
        self._settle_runs()
        self._settle_paragraphs()
        self._join_runs()
        members = {"[Content_Types].xml": _CONTENT_TYPES, "_rels/.rels": _RELATIONS}
        for name, root in (
            ("document", self._root),
            ("styles", self._list_styles()),
            ("numbering", self._list_definitions()),
        ):
            if root is not None:
                members[f"word/{name}.xml"] = etree.tostring(root, encoding="utf-8", xml_declaration=True)
        return pack(members)

    def _element(self, name: str, text: str | None = None, **attributes: str) -> Any:
        element = self._root.makeelement(
            f"{self._w}{name}", {f"{self._w}{key}": value for key, value in attributes.items()}
        )
        element.text = text
        return element

    def _run(self, text: str) -> Any:
        run = self._element("r")
        run.append(self._element("t", text))
        return run

    def _draw_checkboxes(self) -> None:
        for field in list(self._root.iter(f"{self._w}fldChar")):
            box = field.find(f".//{self._w}checkBox")
            if box is None:
                field.getparent().remove(field)
                continue
            state = box.find(f"{self._w}checked")
            state = box.find(f"{self._w}default") if state is None else state
            checked = state is not None and attribute(state, "val") not in _FALSE
            _replace(field, self._element("t", "☒ " if checked else "☐ "))
        for tab in list(self._root.iter(f"{self._w}ptab")):
            _replace(tab, self._element("tab"))

    def _list_styles(self) -> Any:
        """Return the styles reduced to list styles, the only ones that mammoth needs."""
        root = self._parts.part("styles")
        for style in list(root) if root is not None else ():
            if attribute(style, "type") != "numbering":
                root.remove(style)
        return root

    def _list_definitions(self) -> Any:
        root = self._parts.part("numbering")
        for level in root.iter("{*}lvl") if root is not None else ():
            for child in list(level):
                if child.tag.rpartition("}")[2] != "numFmt":
                    level.remove(child)
        return root

    def _settle_alternatives(self) -> None:
        """Keep the version of a drawing with more words, the older one if they tie."""
        for wrapper in list(self._root.iter("{*}AlternateContent")):
            versions = [version for name in ("Fallback", "Choice") for version in wrapper.findall(f"{{*}}{name}")]
            kept = max(versions, key=lambda version: len(words(version)), default=None)
            described = [
                text
                for version in versions
                if version is not kept
                for found in version.iter("{*}docPr")
                if (text := telling(found.get("descr")))
            ]
            alternative = [self._element("t", f" ![{described[0]}] ")] if described else []
            _replace(wrapper, *(() if kept is None else kept), *alternative)

    def _flatten_drawings(self) -> None:
        """Replace drawings by their alternative text, the words of their text boxes and the numbers of their charts."""
        for drawing in list(self._root.iter(f"{self._w}drawing")):
            described = (text for found in drawing.iter("{*}docPr") if (text := telling(found.get("descr"))))
            new = [self._element("t", f" ![{text}] ") for text in list(described)[:1]]
            for box in [box for box in drawing.iter(f"{self._w}txbxContent") if not _inside(box, box.tag)]:
                # mammoth reads text boxes only in the element that older versions of Word use.
                picture = self._element("pict")
                picture.append(box)
                new.append(picture)
            new.extend(self._element("t", f" {text} ") for text in self._drawn_texts(drawing))
            _replace(drawing, *new)

    def _drawn_texts(self, drawing: Any) -> Iterator[str]:
        for chart in drawing.iter(_CHART):
            root = self._drawn_part("chart", attribute(chart, "id"))
            if root is not None:
                title, rows = chart_table(root)
                yield f"Chart: {title};" if title else "Chart:"
                for category, *values in rows[1:]:
                    pairs = zip(rows[0][1:], values, strict=True)
                    yield f"{category}: " + ", ".join(f"{name} {value}".strip() for name, value in pairs) + ";"
        for diagram in drawing.iter(_DIAGRAM):
            root = self._drawn_part("diagramData", attribute(diagram, "dm"))
            if root is not None:
                yield "; ".join(text for point in root.iter("{*}pt") if (text := words(point)))

    def _drawn_part(self, kind: str, relation: str | None) -> Any:
        """Return the root of a part at its first drawing; None for a part drawn again, which adds nothing."""
        if (kind, relation) in self._drawn:
            return None
        self._drawn.add((kind, relation))
        return self._parts.part(kind, relation)

    def _number_notes(self) -> None:
        texts = {kind: self._parts.notes(f"{kind}s") for kind in ("footnote", "endnote")}
        numbers: dict[tuple[str, str], int] = {}
        for reference in list(self._root.iter(*(f"{self._w}{kind}Reference" for kind in texts))):
            kind = reference.tag.removeprefix(self._w).removesuffix("Reference")
            note = attribute(reference, "id") or ""
            if not texts[kind].get(note):
                reference.getparent().remove(reference)
                continue
            if (kind, note) not in numbers:
                numbers[kind, note] = len(numbers) + 1
                self.notes.append(f"[{len(numbers)}] {texts[kind][note]}")
            _replace(reference, self._element("t", f"[{numbers[kind, note]}]"))

    def _settle_runs(self) -> None:
        """Remove hidden text and all formatting."""
        for properties in list(self._root.iter(f"{self._w}rPr")):
            run = properties.getparent()
            if run.tag != f"{self._w}r":
                continue
            hidden = properties.find(f"{self._w}vanish")
            if hidden is not None and attribute(hidden, "val") not in _FALSE:
                run.getparent().remove(run)
            else:
                run.remove(properties)

    def _join_runs(self) -> None:
        """Join adjacent runs: Word starts a new run at every edit, and without formatting neighbours are equal."""
        run_tag, text_tag = f"{self._w}r", f"{self._w}t"
        growing: Any = None
        pieces: list[str] = []
        for run in list(self._root.iter(run_tag)):
            run.attrib.clear()
            before = run.getprevious()
            if before is None or before.tag != run_tag:
                continue
            for child in list(run):
                last = next(before.iterchildren(reversed=True), None)
                if last is None or not last.tag == child.tag == text_tag:
                    before.append(child)
                    continue
                if last is not growing:
                    _set_text(growing, pieces)
                    growing, pieces = last, [last.text or ""]
                pieces.append(child.text or "")
            run.getparent().remove(run)
        _set_text(growing, pieces)
        for paragraph in self._root.iter(f"{self._w}p"):
            paragraph.attrib.clear()

    def _settle_paragraphs(self) -> None:
        styles = Styles(self._parts.part("styles"))
        numbering = Numbering(self._parts.part("numbering"))
        in_cells = {paragraph for cell in self._root.iter(f"{self._w}tc") for paragraph in cell.iter(f"{self._w}p")}
        for paragraph in list(self._root.iter(f"{self._w}p")):
            if styles.is_contents(paragraph):
                paragraph.getparent().remove(paragraph)
                continue
            level = styles.heading_level(paragraph)
            if level == 1:
                self.first_heading = self.first_heading or words(paragraph)
                if styles.is_title(paragraph):
                    self.title = self.title or words(paragraph)
            number = styles.number_of(paragraph)
            label = numbering.label(*number) if number else ""
            is_clause = bool(label) and (level is not None or not _LIST_LABEL.fullmatch(label))
            properties = self._element("pPr")
            if level and paragraph not in in_cells:
                properties.append(self._element("pStyle", val=f"{HEADING_STYLE}{min(level, 6)}"))
            elif number and not is_clause:
                properties.append(self._numbered(*number))
            self._replace_properties(paragraph, properties)
            # An empty numbered paragraph advances the count, but shows nothing to search for.
            if is_clause and words(paragraph):
                paragraph.insert(1, self._run(f"{label} "))

    def _numbered(self, number: str, depth: int) -> Any:
        properties = self._element("numPr")
        properties.append(self._element("ilvl", val=str(depth)))
        properties.append(self._element("numId", val=number))
        return properties

    def _replace_properties(self, paragraph: Any, properties: Any) -> None:
        old = paragraph.find(f"{self._w}pPr")
        if old is not None:
            # The mark of a deleted paragraph end joins the paragraph to the next one.
            mark = old.find(f"{self._w}rPr")
            if mark is not None and mark.find(f"{self._w}del") is not None:
                properties.append(mark)
            paragraph.remove(old)
        paragraph.insert(0, properties)


def _inside(element: Any, tag: str) -> bool:
    return next(element.iterancestors(tag), None) is not None


def _set_text(element: Any, pieces: list[str]) -> None:
    if element is not None:
        element.text = "".join(pieces)


def _replace(element: Any, *others: Any) -> None:
    for other in others:
        element.addprevious(other)
    element.getparent().remove(element)
