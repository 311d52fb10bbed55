"""E-books are read chapter by chapter."""

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract.epub import EpubExtractor
from parquetry.extract.package import pack
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

EPUB = "application/epub+zip"
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
XHTML = '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}</body></html>'
NAV = (
    '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body>'
    '<nav epub:type="toc"><ol><li><a href="text/two%20b.xhtml#start">The  Second</a></li></ol></nav>'
    '<nav epub:type="landmarks"><ol><li><a href="text/one.xhtml">LANDMARK</a></li></ol></nav></body></html>'
)
NCX = (
    '<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://127.0.0.1:1/ncx.dtd">'
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Caf&eacute;</text></navLabel>'
    '<content src="text/one.xhtml"/></navPoint></navMap></ncx>'
)


def epub(files, spine, contents="", extra=None, metadata="<dc:title>A Book</dc:title>"):
    """An e-book of XHTML bodies by file name; `contents` is `nav` or `ncx`."""
    kinds = {"nav": ('properties="nav" media-type="application/xhtml+xml"', "nav.xhtml", NAV),
             "ncx": ('media-type="application/x-dtbncx+xml"', "toc.ncx", NCX)}  # fmt: skip
    items = "".join(
        f'<item id="{name}" href="text/{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for name in files
    )
    members = {"mimetype": EPUB.encode(), "META-INF/container.xml": CONTAINER.encode()}
    if contents:
        attributes, name, text = kinds[contents]
        items += f'<item id="contents" href="{name}" {attributes}/>'
        members[f"OEBPS/{name}"] = text.encode()
    order = "".join(f'<itemref idref="{name}"/>' for name in spine)
    members["OEBPS/book.opf"] = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{metadata}</metadata><manifest>{items}</manifest><spine>{order}</spine></package>"
    ).encode()
    members |= {f"OEBPS/text/{name}": XHTML.format(body).encode() for name, body in files.items()}
    return pack(members | (extra or {}))


def extract(content):
    return EpubExtractor().extract(RawDocument(content, "a.epub"), EPUB, ExtractionSettings())


def test_chapters_stand_in_reading_order_under_their_names():
    files = {"two b.xhtml": "<p>second text</p>", "one.xhtml": "<h1>Opening</h1><p>first text</p>"}
    extraction = extract(epub(files, ["one.xhtml", "contents", "two b.xhtml"], "nav"))
    assert extraction.text == "# Opening\n\nfirst text\n\nsecond text"
    assert [(p.kind, p.number, p.name) for p in extraction.parts] == [
        ("chapter", 1, "Opening"),
        ("chapter", 2, "The Second"),
    ]
    assert [extraction.text[p.start : p.end] for p in extraction.parts] == ["# Opening\n\nfirst text", "second text"]


def test_older_table_of_contents_names_chapters_too():
    extraction = extract(epub({"one.xhtml": "<p>text</p>"}, ["one.xhtml"], "ncx"))
    assert [p.name for p in extraction.parts] == ["Café"]


def test_cover_without_words_is_no_chapter():
    files = {"cover.xhtml": '<img src="c.png" alt="Cover"/>', "one.xhtml": "<p>text</p>"}
    extraction = extract(epub(files, ["cover.xhtml", "one.xhtml"]))
    assert extraction.text == "text"
    assert [p.number for p in extraction.parts] == [1]


def test_empty_title_element_of_xhtml_does_not_swallow_the_chapter():
    assert extract(epub({"one.xhtml": '<p><a id="x"/>planted</p>'}, ["one.xhtml"])).text == "planted"


def test_missing_chapter_is_reported_and_the_others_are_read():
    content = epub({"one.xhtml": "<p>text</p>", "gone.xhtml": ""}, ["gone.xhtml", "one.xhtml"])
    extraction = extract(content.replace(b"OEBPS/text/gone.xhtml", b"OEBPS/text/lost.xhtml"))
    assert extraction.text == "text"
    assert extraction.warnings == ("OEBPS/text/gone.xhtml is in the reading order but missing from the archive",)


def test_metadata_of_the_book_is_kept():
    metadata = (
        "<dc:title>A Book</dc:title><dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator>"
        "<dc:language>de</dc:language><dc:date>2019-08-23</dc:date><dc:date>2023-01-01</dc:date>"
        "<dc:publisher>ACME</dc:publisher>"
    )
    extraction = extract(epub({"one.xhtml": "<p>x</p>"}, ["one.xhtml"], metadata=metadata))
    assert extraction.title == "A Book"
    assert extraction.metadata == {"author": "Ada, Bob", "language": "de", "date": "2019-08-23", "publisher": "ACME"}


def encryption(algorithm):
    return {
        "META-INF/encryption.xml": (
            '<encryption xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData>'
            f'<enc:EncryptionMethod Algorithm="{algorithm}"/></enc:EncryptedData></encryption>'
        ).encode()
    }


def test_scrambled_fonts_do_not_lock_a_book():
    extra = encryption("http://www.idpf.org/2008/embedding")
    assert extract(epub({"one.xhtml": "<p>open</p>"}, ["one.xhtml"], extra=extra)).text == "open"


@pytest.mark.parametrize(
    "extra", [encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc"), {"META-INF/rights.xml": b"<rights/>"}]
)
def test_book_under_rights_management_is_encrypted(extra):
    with pytest.raises(BrokenDocument) as caught:
        extract(epub({"one.xhtml": "<p>x</p>"}, ["one.xhtml"], extra=extra))
    assert caught.value.reason == "encrypted"


def test_archive_without_a_book_is_damaged():
    with pytest.raises(BrokenDocument) as caught:
        extract(pack({"mimetype": EPUB.encode()}))
    assert caught.value.reason == "damaged"


def test_numbers_of_the_printed_pages_are_left_out():
    body = (
        '<p>The rope <span epub:type="pagebreak" id="p12" title="12">12</span>goes first.</p>'
        "<div role='doc-pagebreak' id='p13'>xiii</div><p>Then the tar.<a role='doc-pagebreak' id='p14'/></p>"
    )
    assert extract(epub({"one.xhtml": body}, ["one.xhtml"])).text == "The rope goes first.\n\nThen the tar."
