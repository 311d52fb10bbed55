"""E-books: chapters in reading order, named by the table of contents."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from parquetry.errors import BrokenDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.html.reader import add_html
from parquetry.extract.package import Package, parse_xml
from parquetry.extract.properties import read_properties
from parquetry.extract.scanning import Marks
from parquetry.extract.titles import useful_title
from parquetry.model import Extraction, RawDocument, Scalar

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_RIGHTS = ("META-INF/rights.xml", "META-INF/sinf.xml")
_PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/x-dtbook+xml"})
_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""encryption that only scrambles fonts; anything else encrypted in a book is its text"""
_KEYS = {
    "creator": "author",
    "date": "date",
    "language": "language",
    "publisher": "publisher",
    "subject": "subject",
    "description": "description",
    "identifier": "identifier",
    "rights": "rights",
}
_BODY = re.compile(rb"<body\b", re.IGNORECASE)
_MARKUP = Marks(
    re.compile(rb"<((?:script|style)\b|!--)?", re.IGNORECASE),
    {
        b"": re.compile(rb">"),
        b"!--": re.compile(rb"-->"),
        b"script": re.compile(rb"</script>", re.IGNORECASE),
        b"style": re.compile(rb"</style>", re.IGNORECASE),
    },
)
_HEADING = Marks(
    re.compile(rb"<(h[1-4])\b", re.IGNORECASE),
    {b"h%d" % level: re.compile(rb"</h%d>" % level, re.IGNORECASE) for level in range(1, 5)},
)
_PAGE_BREAK = re.compile(
    rb"<(span|div|a|p|hr)\b[^<>]{0,300}\b(?:epub:type|role)=[\"'](?:doc-)?pagebreak[\"'][^<>]{0,300}(?:(?<=/)>|>[^<]{0,20}</\1\s*>)"
)
"""start of a page of the printed book, often with its number"""
_NAMED_ENTITY = re.compile(rb"&(?!#|amp;|lt;|gt;|quot;|apos;)\w+;")


@dataclass(frozen=True, slots=True)
class _Page:
    """A file of the book."""

    name: str
    """name of the file's archive member"""
    media_type: str
    is_navigation: bool


class EpubExtractor(ListedExtractor):
    """Reads EPUB 2 and 3."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one book: one part per file with text, in reading order.

        Raises:
            BrokenDocument: `damaged`, `encrypted` (with rights management) or `too-large`.
        """
        package = Package(document.content, settings.max_unpacked_bytes)
        _refuse_rights_management(package)
        opf_name = _opf_name(package)
        opf = _xml(package, opf_name)
        pages = _manifest(opf, opf_name)
        spine = [pages[reference] for reference in _spine(opf) if reference in pages]
        names = _chapter_names(package, pages)
        title, metadata = _metadata(opf)
        builder = TextBuilder()
        warnings = []
        number = 1
        for page in dict.fromkeys(spine):
            if page.is_navigation or page.media_type not in _PAGES:
                continue
            if page.name not in package:
                warnings.append(f"{page.name} is in the reading order but missing from the archive")
                continue
            content = _PAGE_BREAK.sub(b"", package.read(page.name))
            # Covers and title pages that consist of a picture have no words and are not chapters.
            if not _words(content):
                continue
            before = builder.length
            builder.part("chapter", number, names.get(page.name) or _first_heading(content))
            add_html(builder, content, main_only=False)
            number += builder.length > before
        return builder.build(
            title=title,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )


def _words(html: bytes) -> str:
    body = _BODY.search(html)
    text = _MARKUP.replace(html[body.start() :] if body else html, lambda _: b" ")
    return " ".join(unescape(text.decode("utf-8", "replace")).split())


def _first_heading(html: bytes) -> str | None:
    heading = next(_HEADING.find(html), None)
    return useful_title(_words(heading.content.partition(b">")[2])) if heading else None


def _refuse_rights_management(package: Package) -> None:
    locked = any(name in package for name in _RIGHTS)
    if _ENCRYPTION in package:
        methods = _xml(package, _ENCRYPTION).iter("{*}EncryptionMethod")
        locked = locked or any(method.get("Algorithm") not in _FONT_OBFUSCATION for method in methods)
    if locked:
        raise BrokenDocument("encrypted", "the book is locked by digital rights management")


def _opf_name(package: Package) -> str:
    if _CONTAINER in package:
        for root_file in _xml(package, _CONTAINER).iter("{*}rootfile"):
            if (root_file.get("full-path") or "") in package:
                return str(root_file.get("full-path"))
    found = next((name for name in package.names if name.lower().endswith(".opf")), None)
    if found is None:
        raise BrokenDocument("damaged", "the archive holds no package document (.opf) of a book")
    return found


def _xml(package: Package, name: str) -> Any:
    """Parse a file of the book, which may use HTML's named entities, unknown to XML."""
    content = _NAMED_ENTITY.sub(lambda match: unescape(match[0].decode()).encode("utf-8"), package.read(name))
    return parse_xml(content, name, allow_doctype=True)


def _manifest(opf: Any, opf_name: str) -> dict[str, _Page]:
    return {
        item.get("id") or "": _Page(
            name=_resolve(opf_name, item.get("href") or ""),
            media_type=item.get("media-type") or "",
            is_navigation="nav" in (item.get("properties") or "").split(),
        )
        for item in opf.iter("{*}item")
    }


def _spine(opf: Any) -> list[str]:
    return [reference.get("idref") or "" for reference in opf.iter("{*}itemref")]


def _metadata(opf: Any) -> tuple[str | None, dict[str, Scalar]]:
    found = opf.find("{*}metadata")
    if found is None:
        return None, {}
    title, metadata = read_properties(found, _KEYS)
    if "date" in metadata:
        # The first date is that of publication; later ones are conversions of the file.
        metadata["date"] = str(metadata["date"]).split(",")[0]
    return title, metadata


def _chapter_names(package: Package, pages: dict[str, _Page]) -> dict[str, str]:
    """Map each chapter's file to its name in the table of contents; the first of several entries counts."""
    names: dict[str, str] = {}
    contents = [page.name for page in pages.values() if page.is_navigation]
    contents += [page.name for page in pages.values() if page.media_type == "application/x-dtbncx+xml"]
    for name in contents:
        if name not in package:
            continue
        try:
            root = _xml(package, name)
        except BrokenDocument:
            # The table of contents only names the chapters; they are readable without it.
            continue
        for target, title in _entries(root):
            names.setdefault(_resolve(name, target), title)
    return names


def _entries(root: Any) -> list[tuple[str, str]]:
    entries = [
        (point.find("{*}content").get("src") or "", "".join(point.find("{*}navLabel").itertext()))
        for point in root.iter("{*}navPoint")
        if point.find("{*}content") is not None and point.find("{*}navLabel") is not None
    ]
    # Lists of pages and of landmarks refer to the same files by other names.
    for navigation in root.iter("{*}nav"):
        if "toc" in (navigation.get("{http://www.idpf.org/2007/ops}type") or "toc").split():
            entries += [(link.get("href") or "", "".join(link.itertext())) for link in navigation.iter("{*}a")]
    return [(target, name) for target, title in entries if (name := useful_title(title))]


def _resolve(base: str, target: str) -> str:
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path))
