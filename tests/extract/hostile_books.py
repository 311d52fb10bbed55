"""XML, e-books and notebooks built to exhaust their reader."""

# ruff: noqa: E501 (one class on one line)

from __future__ import annotations

import io
import json
import zipfile

from tests.extract.hostile_shapes import Hostile, nested, numbered, repeated

_XML = '<?xml version="1.0"?>'

XML: dict[str, Hostile] = {
    "xml: nested": nested("a.xml", "<a>", "</a>", "x", _XML),
    "xml: nested, open": repeated("a.xml", "<a>", _XML),
    "xml: nested, text": nested("a.xml", "<a>x", "y</a>", "x", _XML),
    "xml: nested, attributes": nested("a.xml", '<a b="c">', "</a>", "x", _XML),
    "xml: nested to the limit": lambda size: (
        (_XML + "<r>" + ("<a>" * 150 + "x" + "</a>" * 150) * max(1, size // 1051) + "</r>").encode(), "a.xml"
    ),
    "xml: text between": lambda size: (
        (_XML + "<r>" + ("<a>x" * 150 + "</a>" * 150) * max(1, size // 1200) + "</r>").encode(), "a.xml"
    ),
    "xml: namespaces": nested("a.xml", '<x:a xmlns:x="y">', "</x:a>", "x", _XML),
    "xml: namespaces, one": numbered("a.xml", ' xmlns:x@="y"', f"{_XML}<a", ">x</a>"),
    "xml: attributes": numbered("a.xml", ' a@="b"', f"{_XML}<a", ">x</a>"),
    "xml: elements": repeated("a.xml", "<b>x</b>", f"{_XML}<a>", "</a>"),
    "xml: empty elements": repeated("a.xml", "<b/>", f"{_XML}<a>", "</a>"),
    "xml: records": repeated("a.xml", "<b><c>x</c><d>y</d></b>", f"{_XML}<a>", "</a>"),
    "xml: records, own fields": numbered("a.xml", "<b><c@>x</c@></b>", f"{_XML}<a>", "</a>"),
    "xml: records, one wide": lambda size: (
        (_XML + "<a>" + "<b>" + "".join(f"<c{n}>x</c{n}>" for n in range(size // 30)) + "</b>" + "<b><c0>x</c0></b>" * (size // 36) + "</a>").encode(), "a.xml"
    ),
    "xml: records, half filled": lambda size: (
        (_XML + "<a>" + ("<b>" + "".join(f"<c{n} />" for n in range(64)) + "</b>") * max(1, size // 600) + "</a>").encode(), "a.xml"
    ),
    "xml: records, wide names": repeated("a.xml", f"<b><{'n' * 2000}>x</{'n' * 2000}><d>y</d></b>", f"{_XML}<a>", "</a>"),
    "xml: records, wide names by short rows": repeated(
        "a.xml", "<b c='x'/>", f"{_XML}<a><b c='x' {'n' * 8000}='y'/>", "</a>"
    ),
    "xml: comments": repeated("a.xml", "<!-- -->", f"{_XML}<a>", "x</a>"),
    "xml: comments before": repeated("a.xml", "<!-- -->", _XML, "<a>x</a>"),
    "xml: instructions": repeated("a.xml", "<?a?>", f"{_XML}<a>", "x</a>"),
    "xml: cdata": repeated("a.xml", "<![CDATA[x]]>", f"{_XML}<a>", "x</a>"),
    "xml: cdata, open": repeated("a.xml", "<![CDATA[", f"{_XML}<a>"),
    "xml: references": repeated("a.xml", "&amp;", f"{_XML}<a>", "x</a>"),
    "xml: titles": repeated("a.xml", "<title>x</title>", f"{_XML}<a>", "</a>"),
    "xml: long title": repeated("a.xml", "x ", f"{_XML}<a><title>", "</title></a>"),
    "xml: spaces before": repeated("a.xml", " ", "", f"{_XML}<a>x</a>"),
    "xml: spaces in the declaration": repeated("a.xml", " ", "<?xml ", "?><a>x</a>"),
    "xml: doctype": repeated("a.xml", "<!ELEMENT a (b)>", f"{_XML}<!DOCTYPE a [", "]><a>x</a>"),
    "xml: doctype, attributes": numbered("a.xml", '<!ATTLIST a b@ CDATA "x">', f"{_XML}<!DOCTYPE a [", "]><a>x</a>"),
    "xml: doctype, default values": lambda size: (
        (_XML + "<!DOCTYPE a [" + f'<!ATTLIST b c CDATA "{"x" * (size // 2)}">' + "]><a>" + "<b/>" * (size // 8) + "</a>").encode(), "a.xml"
    ),
    "xml: doctype, nested model": repeated("a.xml", "(", f"{_XML}<!DOCTYPE a [<!ELEMENT a ", ">]><a>x</a>"),
    "xml: xhtml": nested("a.xml", "<div>", "</div>", "x", f'{_XML}<html xmlns="http://www.w3.org/1999/xhtml"><body>', "</body></html>"),
    "xml: entities": repeated("a.xml", "&e;", f'{_XML}<!DOCTYPE a [<!ENTITY e "x">]><a>', "</a>"),
    "xml: entities, long": repeated("a.xml", "&e;", f'{_XML}<!DOCTYPE a [<!ENTITY e "{"x" * 9000}">]><a>', "</a>"),
    "xml: entities, declared": numbered("a.xml", '<!ENTITY e@ "&e0;x">', f"{_XML}<!DOCTYPE a [", "]><a>&e9;</a>"),
    "xml: entities, chain": lambda size: (
        (_XML + '<!DOCTYPE a [<!ENTITY e0 "x">' + "".join(f'<!ENTITY e{n} "&e{n - 1};">' for n in range(1, size // 25)) + f"]><a>&e{size // 25 - 1};</a>").encode(), "a.xml"
    ),
    "xml: entities in an entity": repeated("a.xml", "&e;", f'{_XML}<!DOCTYPE a [<!ENTITY e "x"><!ENTITY f "', '">]><a>&f;</a>'),
    "xml: entities, undeclared": numbered("a.xml", "&e@;", f"{_XML}<a>", "</a>"),
    "xml: doctype, open": repeated("a.xml", "<!ENTITY a 'b' ", f"{_XML}<!DOCTYPE a [", "<a>x</a>"),
    "xml: doctype, open quotes": repeated("a.xml", "<!ENTITY a 'b\" ", f"{_XML}<!DOCTYPE a [", "<a>x</a>"),
    "xml: doctype, open comments": repeated("a.xml", "<!--", f"{_XML}<!DOCTYPE a [", "<a>x</a>"),
    "xml: doctype, quotes": repeated("a.xml", " 'b'", f"{_XML}<!DOCTYPE a PUBLIC", "><a>x</a>"),
    "xml: repaired, end tags": repeated("a.xml", "</b>", f"{_XML}<a><b>x", "</a>"),
    "xml: repaired, end tags of the outermost": repeated("a.xml", "<b></a>", f"{_XML}<a>x"),
    "xml: repaired, open": repeated("a.xml", "<b>x", f"{_XML}<a>"),
    "xml: repaired, open tags": repeated("a.xml", "<b c='d' ", f"{_XML}<a>x"),
    "xml: repaired, open quotes": repeated("a.xml", "<b c='", f"{_XML}<a>x"),
    "xml: repaired, attributes": repeated("a.xml", " b=c", f"{_XML}<a", ">x</a>"),
    "xml: repaired, signs": repeated("a.xml", "&<", f"{_XML}<a>x", "</a>"),
    "xml: repaired, comments": repeated("a.xml", "<!--", f"{_XML}<a>x", "</a>"),
    "xml: repaired, instructions": repeated("a.xml", "<?", f"{_XML}<a>x", "</a>"),
    "xml: repaired, declarations": repeated("a.xml", "<!a", f"{_XML}<a>x"),
    "xml: repaired, roots": repeated("a.xml", "<a>x</a>", _XML),
    "xml: repaired, long names": repeated("a.xml", "b", f"{_XML}<a>x<", "</a>"),
    "xml: article, paragraphs": repeated("a.xml", "<p>x <b>y</b></p>", f"{_XML}<article><body>", "</body></article>"),
    "xml: article, titles": repeated("a.xml", "<title>x</title>", f"{_XML}<article><body><sec>", "</sec></body></article>"),
    "xml: article, sections": nested("a.xml", "<sec><title>x</title>", "</sec>", "", f"{_XML}<article><body>", "</body></article>"),
    "xml: article, quotations": nested("a.xml", "<disp-quote><p>x</p>", "</disp-quote>", "", f"{_XML}<article><body>", "</body></article>"),
    "xml: article, names in names": nested("a.xml", "<name><surname>x</surname>", "</name>", "", f"{_XML}<article><body>", "</body></article>"),
    "xml: article, information in information": nested("a.xml", "<info>", "</info>", "<title>x</title>", f"{_XML}<article>", "</article>"),
    "xml: article, articles in articles": nested("a.xml", "<article><body>", "</body></article>", "<p>x</p>", _XML),
    "xml: article, labels": repeated("a.xml", "<fig><label>x</label><caption><p>y</p></caption></fig>", f"{_XML}<article><body>", "</body></article>"),
    "xml: article, facts": repeated("a.xml", "<volume>x</volume>", f"{_XML}<article><front><article-meta>", "</article-meta></front></article>"),
    "xml: article, footnotes in footnotes": nested("a.xml", "<footnote><para>x", "</para></footnote>", "", f"{_XML}<article><para>", "</para></article>"),
    "xml: article, lists": nested("a.xml", "<list><list-item>x", "</list-item></list>", "", f"{_XML}<article><body>", "</body></article>"),
    "xml: table, rows": repeated("a.xml", "<tr><td>x</td><td>y</td></tr>", f"{_XML}<a><table>", "</table></a>"),
    "xml: table, spans": repeated("a.xml", "<tr><td colspan='9999' rowspan='9999'>x</td><td>y</td></tr>", f"{_XML}<a><table>", "</table></a>"),
    "xml: table, spans down": repeated("a.xml", "<td rowspan='9999'>x</td>", f"{_XML}<a><table><tr>", "</tr></table></a>"),
    "xml: table, last column": lambda size: (
        (_XML + "<a><table><tgroup>" + "<colspec colname='a'/>" * (size // 60) + "<tbody>" + "<row><entry colname='a'>x</entry></row>" * (size // 60) + "</tbody></tgroup></table></a>").encode(), "a.xml"
    ),
    "xml: table, groups": repeated("a.xml", "<tgroup><tbody><row><entry>x</entry><entry>y</entry></row></tbody></tgroup>", f"{_XML}<a><table>", "</table></a>"),
    "xml: table in table": nested("a.xml", "<table><tr><td>x</td><td>", "</td></tr></table>", "x", f"{_XML}<a>", "</a>"),
    "xml: feed": repeated("a.xml", "<item><title>x</title><description>&lt;p&gt;y</description></item>", f"{_XML}<rss><channel>", "</channel></rss>"),
    "xml: feed, nested": repeated("a.xml", "&lt;div&gt;", f"{_XML}<rss><channel><item><title>x</title><description>", "</description></item></channel></rss>"),
    "xml: feed, nested items": nested("a.xml", "<item><title>x</title>", "</item>", "", f"{_XML}<rss><channel>", "</channel></rss>"),
    "xml: feed, entries": repeated("a.xml", "<entry><title>x</title><content type='xhtml'><div>y</div></content></entry>", f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom">', "</feed>"),
}  # fmt: skip


def book(pages: dict[str, str], spine: list[str], toc: str = "", navigation: str = "", more: str = "") -> bytes:
    """An uncompressed e-book of the given pages."""
    items = "".join(
        f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(pages)
    )
    places = {name: n for n, name in enumerate(pages)}
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>T</dc:title>{more}</metadata><manifest>{items}"
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/></manifest><spine>'
        + "".join(f'<itemref idref="i{places[name]}"/>' for name in spine)
        + "</spine></package>"
    )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
            'full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        )
        archive.writestr("a.opf", opf)
        archive.writestr("toc.ncx", f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{toc}</navMap></ncx>')
        archive.writestr("nav.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{navigation}</body></html>')
        for name, content in pages.items():
            archive.writestr(name, content)
    return target.getvalue()


def _book_of(before: str, piece: str, after: str = "") -> Hostile:
    def build(size: int) -> tuple[bytes, str]:
        page = '<html xmlns="http://www.w3.org/1999/xhtml">' + before + piece * (size // len(piece)) + after
        return book({"p.xhtml": page}, ["p.xhtml"]), "a.epub"

    return build


def _contents_of(
    toc: str = "", navigation: str = "", more: str = "", close: tuple[str, str, str] = ("", "", "")
) -> Hostile:
    def build(size: int) -> tuple[bytes, str]:
        parts = [
            piece * (size // len(piece + closing)) + closing * (size // len(piece + closing)) if piece else ""
            for piece, closing in zip((toc, navigation, more), close, strict=True)
        ]
        return book({"p.xhtml": "<body><p>Text of the page.</p></body>"}, ["p.xhtml"], *parts), "a.epub"

    return build


_POINT = '<navPoint><navLabel><text>x</text></navLabel><content src="p.xhtml"/>'
BOOKS: dict[str, Hostile] = {
    "epub: <": _book_of("<body><p>x</p>", "<"),
    "epub: <script": _book_of("<body><p>x</p>", "<script"),
    "epub: <script>": _book_of("<body><p>x</p>", "<script>"),
    "epub: <!--": _book_of("<body><p>x</p>", "<!--"),
    "epub: <h1": _book_of("<body><p>x</p>", "<h1"),
    "epub: <h1>": _book_of("<body><p>x</p>", "<h1>"),
    "epub: <h1>x</h2>": _book_of("<body><p>x</p>", "<h1>x</h2>"),
    "epub: <body": _book_of("<body><p>x</p>", "<body"),
    "epub: <span role=pagebreak": _book_of("<body><p>x</p>", '<span role="pagebreak" '),
    "epub: <span role=pagebreak>": _book_of("<body><p>x</p>", '<span role="pagebreak">'),
    "epub: <span": _book_of("<body><p>x</p>", "<span "),
    "epub: <span role=": _book_of("<body><p>x</p><span", ' role="'),
    "epub: nested divs": _book_of("<body><p>x</p>", "<div>"),
    "epub: one page again and again": lambda size: (
        book({"p.xhtml": "<body>" + "<p>x y z</p>" * (size // 24)}, ["p.xhtml"] * (size // 44)), "a.epub"
    ),
    "epub: small page again and again": lambda size: (
        book({"p.xhtml": "<body><p>Text of the page.</p></body>"}, ["p.xhtml"] * (size // 21)), "a.epub"
    ),
    "epub: many pages": lambda size: (
        book({f"p{n}.xhtml": "<body><p>x</p></body>" for n in range(min(19_000, size // 300))}, [f"p{n}.xhtml" for n in range(min(19_000, size // 300))]), "a.epub"
    ),
    "epub: missing pages": lambda size: (
        _without(book({"p.xhtml": "<body><p>x</p></body>", "gone.xhtml": ""}, ["p.xhtml"] + ["gone.xhtml"] * (size // 21)), "gone.xhtml"), "a.epub"
    ),
    "epub: nested contents": _contents_of(toc=_POINT, close=("</navPoint>", "", "")),
    "epub: contents": _contents_of(toc=_POINT + "</navPoint>"),
    "epub: nested labels": _contents_of(toc="<navPoint><navLabel>x<content/>", close=("</navLabel></navPoint>", "", "")),
    "epub: nested navigation": _contents_of(navigation='<nav><a href="p.xhtml">x', close=("", "</a></nav>", "")),
    "epub: links of navigation": _contents_of(navigation='<nav><a href="p.xhtml">x</a></nav>'),
    "epub: authors": _contents_of(more="<dc:creator>x</dc:creator>"),
    "epub: entities": _contents_of(more="<dc:creator>&auml;&nosuchname;</dc:creator>"),
    "epub: &": _contents_of(more="&"),
}  # fmt: skip


def _without(content: bytes, name: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w") as archive:
        for member in source.infolist():
            if member.filename != name:
                archive.writestr(member, source.read(member))
    return target.getvalue()


def _notebook(cell: object) -> Hostile:
    def build(size: int) -> tuple[bytes, str]:
        count = max(1, size // (len(json.dumps(cell)) + 2))
        return json.dumps(
            {"cells": [cell] * count, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        ).encode(), "a.ipynb"

    return build


def _notebook_of(kind: str, piece: str) -> Hostile:
    def build(size: int) -> tuple[bytes, str]:
        cell = {
            "cell_type": kind,
            "metadata": {},
            "source": piece * (size // len(json.dumps(piece)[1:-1])),
            "outputs": [],
        }
        return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode(), "a.ipynb"

    return build


def _outputs_of(output: dict[str, object]) -> Hostile:
    def build(size: int) -> tuple[bytes, str]:
        outputs = [output] * max(1, size // (len(json.dumps(output)) + 2))
        cell = {"cell_type": "code", "metadata": {}, "source": "x = 1", "outputs": outputs}
        return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode(), "a.ipynb"

    return build


NOTEBOOKS: dict[str, Hostile] = {
    "notebook: cells": _notebook({"cell_type": "code", "source": "x", "outputs": []}),
    "notebook: markdown cells": _notebook({"cell_type": "markdown", "source": "# x"}),
    "notebook: headings": _notebook({"cell_type": "heading", "level": 1, "source": "x"}),
    "notebook: outputs": _outputs_of({"output_type": "stream", "text": "x"}),
    "notebook: outputs of lines": _outputs_of({"output_type": "stream", "text": ["x\n"] * 50}),
    "notebook: nested outputs": lambda size: (
        ('{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "x", "outputs": ' + "[" * (size // 2) + "]" * (size // 2) + "}]}").encode(), "a.ipynb"
    ),
    "notebook: nested cells, open": repeated("a.ipynb", "[", '{"nbformat": 4, "cells": '),
    "notebook: backticks": _notebook_of("code", "`"),
    "notebook: rising backticks": lambda size: (
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "\n".join("`" * n for n in range(3, int((2 * size) ** 0.5)))}]}).encode(), "a.ipynb"
    ),
    "notebook: colours": _notebook_of("raw", "\x1b["),
    "notebook: colours, open": _outputs_of({"output_type": "stream", "text": "\x1b[" + "1;" * 200}),
    "notebook: one line": _notebook_of("code", "a"),
    "notebook: brackets in markdown": _notebook_of("markdown", "# [a]("),
    "notebook: lists in markdown": _notebook_of("markdown", "- "),
}  # fmt: skip
