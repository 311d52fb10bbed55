"""Articles and books in XML: JATS, DocBook, and topics of DITA, with their titles, lists, tables and code.

Their parts are read as those of a web page. Titles are headings, one level below the title of the part around.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from parquetry.extract.html.reader import read_page
from parquetry.extract.xml.names import MAX_LEVEL, local_name, spaced_text, text_of, title_of
from parquetry.extract.xml.tables import is_table, table_html

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from parquetry.extract.builder import TextBuilder


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


TITLES = frozenset({"title", "article-title", "book-title", "refentrytitle", "bridgehead"})
INFORMATION = _set(
    "front front-stub article-meta book-meta title-group book-title-group info bookinfo articleinfo chapterinfo "
    "sectioninfo refmeta prolog"
)
"""elements about the part around them, which hold its title"""
_ROOTS = _set(
    "article book set part chapter appendix preface section sect1 refentry reference glossary bibliography topic "
    "concept task"
)
_SIGNS = _set(
    "front body back front-stub book-body para simpara section sect1 chapter part refnamediv refsect1 info articleinfo "
    "bookinfo chapterinfo conbody taskbody refbody topic concept task"
)
"""elements in those above that tell an article from a record of the same name"""
_ABOUT = INFORMATION | _set("journal-meta journal-title-group history permissions publisher book-meta")
"""elements whose parts are facts, written as lines of `name: value`"""
_LABELS: Final = {
    "contrib-group": "Authors", "author": "Author", "authorgroup": "Authors", "kwd-group": "Keywords",
    "keywordset": "Keywords", "pub-date": "Published", "pubdate": "Published", "journal-title": "Journal",
    "publisher-name": "Publisher", "publishername": "Publisher", "article-id": "", "journal-id": "Journal",
    "aff": None, "copyright-statement": None,
}  # fmt: skip
"""name of a fact -> how it is told: empty for its kind alone, None for its text alone"""
_KINDS = ("pub-id-type", "pub-type", "date-type", "journal-id-type", "contrib-type")
_FACTS = _set("abstract trans-abstract permissions history publisher license legalnotice")
"""elements in those about a part that are read as any other"""
_FORMAL = _set(
    "figure fig fig-group table table-wrap example equation procedure list itemizedlist orderedlist variablelist "
    "def-list glosslist note tip warning caution important boxed-text sidebar simpletable"
)
"""elements whose title is a caption or a first line, no heading"""
_BLOCKS = _FORMAL | _set(
    "p para simpara caption sec section informalfigure informalexample informalequation mediaobject "
    "supplementary-material media table-wrap-foot"
)
"""elements that stand apart, even in running text"""
_RUNNING = _set("p para simpara term glossterm dt label attrib code")
"""elements of running text, in which others stand on the same line"""
_PHRASES: Final = {
    "name": " ", "string-name": " ", "personname": " ", "author": " ", "editor": " ", "contrib": " ", "date": "-",
    "pub-date": "-", "copyright": " ", "ref": " ", "aff": " ", "caption": " ", "element-citation": ", ",
    "nlm-citation": ", ", "mixed-citation": ", ", "person-group": ", ", "contrib-group": ", ", "authorgroup": ", ",
    "kwd-group": ", ", "keywordset": ", ", "subj-group": ", ", "refnamediv": " – ", "biblioentry": ", ",
    "affiliation": ", ", "disp-formula": " ", "funcprototype": " ", "cmdsynopsis": " ",
}  # fmt: skip
"""elements that make one line -> sign between their parts"""
_ORDER: Final = ("label", "year", "month", "day", "given-names", "firstname", "surname")
"""parts of dates and names, in the order of reading"""
_TAGS: Final = {
    "itemizedlist": "ul", "orderedlist": "ol", "simplelist": "ul", "procedure": "ol", "substeps": "ol", "steps": "ol",
    "ul": "ul", "ol": "ol", "sl": "ul", "list-item": "li", "listitem": "li", "step": "li", "member": "li", "li": "li",
    "sli": "li", "variablelist": "dl", "def-list": "dl", "glosslist": "dl", "dl": "dl", "term": "dt", "glossterm": "dt",
    "dt": "dt", "def": "dd", "glossdef": "dd", "dd": "dd", "disp-quote": "blockquote", "blockquote": "blockquote",
    "lq": "blockquote", "epigraph": "blockquote",
}  # fmt: skip
"""name of an element -> that of a web page"""
_CODE = _set("programlisting screen preformat codeblock literallayout synopsis")
_UNREAD = _set("indexterm graphic inline-graphic imagedata object-id counts")
_DEEP = 12
"""levels of names and citations in each other"""


def is_article(element: Element) -> bool:
    """Return True for the outermost element of an article or a book."""
    return local_name(element) in _ROOTS and any(local_name(child) in _SIGNS for child in element)


@dataclass(slots=True)
class _Left:
    """An element, or HTML, that is still to be written."""

    piece: Element | str
    level: int
    """level of the heading above; 0 if there is none"""
    parent: Element | None = None
    closes: bool = False
    """True for an end tag"""


def write_article(builder: TextBuilder, root: Element, level: int = 0) -> list[str]:
    """Write an article or a book into a builder; return warnings.

    Args:
        builder: receives headings, paragraphs, lists, tables and code.
        root: see `is_article`.
        level: level of the heading above; 0 if there is none.
    """
    writer = _ArticleWriter(builder)
    writer.write(root, level)
    return writer.warnings


class _ArticleWriter:
    """Writes the elements of an article."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._html: list[str] = []
        self._running: list[bool] = []
        """for each open element of the page: True if it is running text"""
        self._written: Element | None = None
        """a title written before its place"""
        self.warnings: list[str] = []

    def write(self, root: Element, level: int) -> None:
        """Write an element and all within."""
        left = [_Left(root, level)]
        while left:
            one = left.pop()
            if isinstance(one.piece, str):
                self._html.append(one.piece)
                if one.closes:
                    self._running.pop()
            elif isinstance(one.piece.tag, str):
                left.extend(reversed(self._enter(one.piece, one.level, one.parent)))
        self._flush()

    def _enter(self, element: Element, level: int, parent: Element | None) -> list[_Left]:
        """Write an element without parts of its own, or return its parts."""
        name = local_name(element)
        around = local_name(parent) if parent is not None else ""
        if name in _UNREAD or element is self._written or (name == "label" and _has_caption(parent)):
            return []
        if name in TITLES:
            self._title(element, level, parent)
        elif is_table(element):
            self._html.append(table_html(element))
        elif name == "footnote":
            self._html.append(f" ({escape(spaced_text(element))})")
        elif name == "math":
            self._html.append(escape(text_of(element)))
        elif name in _CODE:
            self._html.append(f"<pre>{escape(''.join(element.itertext()))}</pre>")
        elif around in _ABOUT and name not in _ABOUT | _FACTS and (name in _PHRASES or len(element) == 0):
            self._html.append(f"{escape(_fact(element))}<br>")
        elif name in _PHRASES:
            text = _phrase(element)
            label = _label(parent) if name == "caption" else ""
            self._line(f"{label} {text}".strip())
        elif name == "alternatives":
            return [_Left(chosen, level, element)] if (chosen := _readable(element)) is not None else []
        else:
            title = title_of(element, TITLES, INFORMATION) if name not in INFORMATION | _FORMAL else None
            if title is not None:
                level = min(level + 1, MAX_LEVEL)
            if title is not None and title_of(element, TITLES) is None:
                # The information about a part may begin with that about the journal.
                self._title(title, level, None)
                self._written = title
            return self._parts(element, level, parent)
        return []

    def _parts(self, element: Element, level: int, parent: Element | None) -> list[_Left]:
        name = local_name(element)
        tag = _tag(element, parent)
        running = name in _RUNNING or len(element) == 0 or _is_mixed(element)
        within_text = bool(self._running) and self._running[-1]
        if not tag and ((running and not within_text) or (name in _BLOCKS and within_text)):
            tag = "div"
        left = [_Left(escape(element.text or ""), level)]
        children = sorted(element, key=_is_abstract) if name in INFORMATION else element
        for child in children:
            left.append(_Left(child, level, element))
            space = " " if local_name(child) == "label" else ""
            left.append(_Left(space + escape(child.tail or ""), level))
        if tag:
            self._html.append(f"<{tag}>")
            self._running.append(running)
            left.append(_Left(f"</{tag}>", level, closes=True))
        return left

    def _title(self, element: Element, level: int, parent: Element | None) -> None:
        text = text_of(element)
        if self._running or (parent is not None and local_name(parent) in _FORMAL):
            self._line(f"{_label(parent)} {text}".strip())
            return
        self._flush()
        label = _label(parent) if parent is not None and local_name(parent) not in INFORMATION else ""
        self._builder.heading(max(1, level + (local_name(element) == "bridgehead")), f"{label} {text}".strip())

    def _line(self, text: str) -> None:
        self._html.append(f"<div>{escape(text)}</div>")

    def _flush(self) -> None:
        html = "".join(self._html)
        self._html.clear()
        if html.strip():
            self.warnings += read_page(self._builder, html, main_only=False).warnings


def _is_abstract(part: Element) -> bool:
    return local_name(part) in ("abstract", "trans-abstract")


def _label(parent: Element | None) -> str:
    first = parent[:3] if parent is not None else []
    return next((text_of(child) for child in first if local_name(child) == "label"), "")


def _has_caption(parent: Element | None) -> bool:
    """Return True if the label of an element is written with its title."""
    return parent is not None and any(local_name(child) in ("caption", "title") for child in parent[:4])


def _tag(element: Element, parent: Element | None) -> str:
    name = local_name(element)
    if name == "list":
        return "ul" if element.get("list-type", "bullet") in ("bullet", "simple") else "ol"
    if name == "listitem" and parent is not None and local_name(parent) == "varlistentry":
        return "dd"
    return _TAGS.get(name, "")


def _is_mixed(element: Element) -> bool:
    return bool((element.text or "").strip()) or any((child.tail or "").strip() for child in element)


def _readable(alternatives: Element) -> Element | None:
    """Return the first of several forms of one thing that is text, and no source of TeX if there is another."""
    forms = [form for form in alternatives if text_of(form)]
    return next((form for form in forms if local_name(form) != "tex-math"), forms[0] if forms else None)


def _phrase(element: Element, depth: int = 0) -> str:
    """Return an element as one line, its parts divided as usual."""
    if local_name(element) == "alternatives":
        chosen = _readable(element)
        return spaced_text(chosen) if chosen is not None else ""
    sign = _PHRASES.get(local_name(element))
    if sign is None or len(element) == 0 or depth > _DEEP:
        return spaced_text(element)
    if _is_mixed(element):
        label = _label(element)
        text = spaced_text(element)
        return f"{label} {text.removeprefix(label).lstrip()}" if label and text.startswith(label) else text
    parts = [child for child in element if isinstance(child.tag, str) and local_name(child) not in ("xref", "role")]
    if sign != ", ":
        parts.sort(key=lambda part: _ORDER.index(local_name(part)) if local_name(part) in _ORDER else len(_ORDER))
    texts = [text for part in parts if (text := _phrase(part, depth + 1))]
    if sign == "-":
        texts = [text.zfill(2) if text.isdigit() else text for text in texts]
    return sign.join(texts)


def _fact(element: Element) -> str:
    """Return a fact about a document: `Keywords: pump, valve`, `doi: 10.1/x`, `Published (epub): 2007-02-14`."""
    name = local_name(element)
    kind = next((element.get(key, "") for key in _KINDS if key in element.attrib), "")
    label = _LABELS.get(name, name)
    text = _phrase(element)
    if not text or label is None:
        return text
    if not label:
        label, kind = kind or name, ""
    return f"{label} ({kind}): {text}" if kind else f"{label}: {text}"
