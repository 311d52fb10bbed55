"""XML: no entity is expanded, all text is readable."""

from __future__ import annotations

import pytest

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.markup import MarkupExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def read(content: str | bytes) -> Extraction:
    content = content.encode() if isinstance(content, str) else content
    return MarkupExtractor().extract(RawDocument(content, "data.xml"), "application/xml", ExtractionSettings())


@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>',
        f'<!DOCTYPE x [<!ENTITY l9 "{"ha" * 50_000}">]>',
        '<!DOCTYPE x [<!ENTITY l9 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>',
        '<!DOCTYPE x [<!ENTITY l9 "&l8;"><!ENTITY l8 "&l9;">]>',
    ],
    ids=["billion laughs", "quadratic", "local file", "parameter", "cycle"],
)
def test_declared_entities_are_refused(doctype: str) -> None:
    with pytest.raises(BrokenDocument) as caught:
        read(f"<?xml version='1.0'?>{doctype}<x>&l9;&l9;</x>")
    assert caught.value.reason == "unsafe-xml"


def test_a_document_type_alone_is_harmless() -> None:
    assert (
        read('<!DOCTYPE note SYSTEM "note.dtd"><note><to>Jo</to><re>Pump</re></note>').text == "note\nto: Jo\nre: Pump"
    )


@pytest.mark.parametrize("content", ["<a><b></a>", "words", "<a>&nbsp;</a>", "<a"])
def test_what_is_not_xml_is_damaged(content: str) -> None:
    with pytest.raises(BrokenDocument) as caught:
        read(content)
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "koi8-r", "shift_jis"])
def test_the_declared_encoding_holds(encoding: str) -> None:
    word = {"koi8-r": "Обои", "shift_jis": "日本語"}.get(encoding, "Grüße")
    content = f'<?xml version="1.0" encoding="{encoding}"?><a><b>{word}</b></a>'.encode(encoding)
    assert f"b: {word}" in read(content).text


def test_records_are_a_table() -> None:
    extraction = read(
        '<book xmlns="urn:x"><c id="1"><name>France &amp; Co</name><city>Paris</city></c>'
        '<c id="2"><name>Spain</name><city/></c></book>'
    )
    assert extraction.text == (
        "| id | name | city |\n| --- | --- | --- |\n| 1 | France & Co | Paris |\n| 2 | Spain |  |"
    )


def test_titles_are_headings_and_mixed_content_is_running_text() -> None:
    extraction = read(
        "<article><title>Pumps</title><section><title>Open</title><para>Turn the <b>red</b> valve.</para></section>"
        "<!-- planted --><section><title>Close</title><para>Turn it back.</para></section></article>"
    )
    assert extraction.text == "# Pumps\n\n## Open\n\nTurn the red valve.\n\n## Close\n\npara: Turn it back."
    assert [heading.title for heading in extraction.headings] == ["Pumps", "Open", "Close"]
    assert extraction.title == "Pumps"


def test_attributes_are_told() -> None:
    assert read('<conf><server host="a1" port="80"><path>/x</path></server></conf>').text == (
        "server (host=a1, port=80)\npath: /x"
    )


def test_deep_nesting_is_flattened_and_reported() -> None:
    extraction = read("<r><t>top</t>" + "<a>" * 5000 + "deep" + "</a>" * 5000 + "</r>")
    assert "t: top" in extraction.text
    assert extraction.text.endswith("deep")
    assert extraction.warnings == ("too-deep: 1 element is nested deeper than 200 levels, and read as text",)


def test_an_rss_feed_has_a_section_for_each_item() -> None:
    extraction = read(
        '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title>'
        "<description>About pumps</description><item><title>One</title><link>https://example.com/1</link>"
        "<pubDate>Mon, 06 May 2024</pubDate><description>short</description>"
        "<content:encoded><![CDATA[<p>Body &amp; <b>soul</b></p><script>planted()</script>]]></content:encoded></item>"
        "<item><title>Two</title><description>&lt;ul&gt;&lt;li&gt;point&lt;/li&gt;&lt;/ul&gt;</description></item>"
        "</channel></rss>"
    )
    assert extraction.text == (
        "# News\n\nAbout pumps\n\n## One\n\nPublished: Mon, 06 May 2024\nLink: https://example.com/1\n\nBody & soul\n\n"
        "## Two\n\n- point"
    )
    assert extraction.title == "News"


def test_an_rss_1_feed_has_its_items_beside_the_channel() -> None:
    rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
    extraction = read(
        f"<rdf:RDF {rdf}><channel><title>News</title></channel><item><title>One</title><description>a</description>"
        "</item></rdf:RDF>"
    )
    assert extraction.text == "# News\n\n## One\n\na"


def test_an_atom_feed_is_read() -> None:
    extraction = read(
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><entry><title>E</title><link href="https://e.com"/>'
        '<author><name>Jo</name></author><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>In <b>x</b>'
        "</p></div></content></entry></feed>"
    )
    assert extraction.text == "# Log\n\n## E\n\nAuthor: Jo\nLink: https://e.com\n\nIn x"


def test_document_type_that_declares_more_attributes_than_any_has_is_refused() -> None:
    def declared(count: int) -> str:
        return f"<!DOCTYPE a [{''.join(f'<!ATTLIST a b{n} CDATA #IMPLIED>' for n in range(count))}]><a>x</a>"

    assert "x" in read(declared(10_000)).text
    with pytest.raises(BrokenDocument, match="declares more than 10,000 attributes") as refused:
        read(declared(10_001))
    assert refused.value.reason == "too-many-parts"


def test_attributes_that_only_a_document_type_tells_are_read_as_long_as_they_are_few() -> None:
    def told(declared: str) -> Extraction:
        return read(f"<!DOCTYPE a [<!ATTLIST b {declared}>]><a><b>x</b>{'<b/>' * 5000}<b c='z'/></a>")

    assert told("c CDATA 'y'").text.startswith("a\nb (c=y): x\nb (c=y)\n")
    for declared in (f"c CDATA '{'y' * 3000}'", " ".join(f"c{n} CDATA 'y'" for n in range(1000))):
        extraction = told(declared)
        assert extraction.text == "a\nb: x\nb (c=z)"
        assert extraction.warnings == (
            "attributes that only its type declares, with more than 2000 characters, were left out",
        )


def test_elements_without_text_are_skipped() -> None:
    with pytest.raises(SkippedDocument) as caught:
        read("<a><b/><c></c></a>")
    assert caught.value.reason == "no-text"
