"""XML: entities stay within bounds, all text is readable."""

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
def test_entities_that_expand_without_end_or_refer_to_files_are_refused(doctype: str) -> None:
    with pytest.raises(BrokenDocument) as caught:
        read(f"<?xml version='1.0'?>{doctype}<x>&l9;&l9;</x>")
    assert caught.value.reason == "unsafe-xml"


def test_a_document_type_alone_is_harmless() -> None:
    assert (
        read('<!DOCTYPE note SYSTEM "note.dtd"><note><to>Jo</to><re>Pump</re></note>').text == "note\nto: Jo\nre: Pump"
    )


@pytest.mark.parametrize("content", ["<a><b></a>", "words", "<a", "a < b", "<!-- <a>x</a> -->"])
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


def test_titles_are_headings_and_paragraphs_have_no_names() -> None:
    extraction = read(
        "<article><title>Pumps</title><section><title>Open</title><para>Turn the <b>red</b> valve.</para></section>"
        "<!-- planted --><section><title>Close</title><para>Turn it back.</para></section></article>"
    )
    assert extraction.text == "# Pumps\n\n## Open\n\nTurn the red valve.\n\n## Close\n\nTurn it back."
    assert [heading.title for heading in extraction.headings] == ["Pumps", "Open", "Close"]
    assert extraction.title == "Pumps"


def test_titles_of_any_xml_are_headings_below_those_around_them() -> None:
    extraction = read(
        "<TEI><teiHeader><fileDesc><title>Pumps</title></fileDesc></teiHeader><text><body><div><head>Open</head>"
        "<div><head>Valves</head><p>Turn the <b>red</b> one.</p></div></div>"
        "<div><head>Close</head></div></body></text></TEI>"
    )
    assert [(heading.level, heading.title) for heading in extraction.headings][1:] == [
        (1, "Open"), (2, "Valves"), (1, "Close")
    ]  # fmt: skip


def test_tables_of_any_xml_are_tables() -> None:
    extraction = read(
        "<report><note>n</note><table><head>Speeds</head><row><cell>Pump</cell><cell>Speed</cell></row>"
        "<row><cell>A</cell><cell>3</cell></row></table></report>"
    )
    assert extraction.text == "report\nnote: n\n\n| Pump | Speed |\n| --- | --- |\n| A | 3 |"


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
        "# News\n\nAbout pumps\n\n## One\n\nPublished: Mon, 06 May 2024\nLink: https://example.com/1\n\nshort\n\n"
        "Body & soul\n\n## Two\n\n- point"
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


def item(content: str) -> str:
    """Return the section of an item of a feed."""
    text = read(f"<rss><channel><title>News</title><item><title>One</title>{content}</item></channel></rss>").text
    return text.removeprefix("# News\n\n## One\n\n")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<creator>Jo</creator><creator>Al</creator><author>Jo</author>", "Author: Jo, Al"),
        ("<category>a</category><category term='b'/><category term='c' label='C'/>", "Categories: a, b, C"),
        ("<date>2024-05-06</date><pubDate>later</pubDate>", "Published: 2024-05-06"),
        ("<link rel='self' href='s'/><link rel='alternate' href='a'/><link>b</link>", "Link: a"),
        ("<enclosure url='https://e.com/1.mp3' type='audio/mpeg'/><duration>31:02</duration>",
         "Duration: 31:02\nFile: https://e.com/1.mp3"),
        ("<description>&lt;p&gt;The pump...&lt;/p&gt;</description><encoded>&lt;p&gt;The pump runs.&lt;/p&gt;"
         "</encoded>", "The pump runs."),
        ("<description>In short: it runs.</description><encoded>The pump runs.</encoded>",
         "In short: it runs.\n\nThe pump runs."),
        ("<summary>Short.</summary><content type='text'>if a &lt;b&gt; c &amp;amp; d</content>",
         "Short.\n\nif a <b> c &amp; d"),
        ("<group><title>x</title><description>Of a video.</description></group>", "Of a video."),
    ],
    ids=["authors", "categories", "dates", "links", "file", "beginning", "summary", "plain", "video"],
)  # fmt: skip
def test_item_of_a_feed_has_what_is_told_about_it(content: str, text: str) -> None:
    assert item(content) == text


def test_titles_of_items_may_be_html_or_missing() -> None:
    extraction = read(
        "<feed><title type='html'>A &amp;amp; B</title><entry><title type='html'>&lt;b&gt;One&lt;/b&gt; day</title>"
        "<content>x</content></entry><entry><published>2024-05-06</published><content>y</content></entry>"
        "<entry><title type='text'>a &lt;b&gt;</title></entry></feed>"
    )
    assert [heading.title for heading in extraction.headings] == ["A & B", "One day", "2024-05-06", "a <b>"]


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
