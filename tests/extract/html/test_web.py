"""Web pages: required text, forbidden text, and its form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.errors import SkippedDocument
from parquetry.extract.builder import TextBuilder
from parquetry.extract.html.reader import WebExtractor, add_html
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

PARAGRAPHS = "".join(
    f"<p>Paragraph {n} of the article says that pump number {n} has to be opened slowly, step by step, by hand.</p>"
    for n in range(12)
)
PAGE = f"""<!DOCTYPE html>
<html lang="en"><head>
<meta charset="utf-8"><title>Pump manual | Site</title>
<meta name="author" content="Jo Doe"><meta name="description" content="How to open pumps.">
<meta property="article:published_time" content="2024-05-01"><link rel="canonical" href="https://example.com/pumps">
<style>.planted-style {{ color: red }}</style><script>var planted_script = 1;</script></head>
<body>
<header><a href="/">planted-home</a> <a href="/in">planted-login</a></header>
<nav><ul><li><a href="/a">planted-nav one</a></li><li><a href="/b">planted-nav two</a></li></ul></nav>
<div class="cookie-banner"><p>planted-cookies are used here. <a href="#">planted-accept</a></p></div>
<main><article>
<h1>Pump manual</h1>
<!-- planted-comment -->
{PARAGRAPHS}
<h2>Values<a class="headerlink" href="#values">¶</a></h2>
<table><caption>Limits</caption><thead><tr><th>Pump</th><th>Bar</th></tr></thead>
<tbody><tr><td rowspan="2">P1</td><td>1.5</td></tr><tr><td>2<br>to 3</td></tr></tbody></table>
<ul><li>First</li><li>Second<ol start="3"><li>Inner <code>x = 1</code></li></ol></li></ul>
<pre><code class="language-python">def f():
    return 1
</code></pre>
<blockquote><p>Quoted words.</p></blockquote>
<p><img src="x.png" alt="A red valve"><img src="y.png" alt="logo"></p>
<p style="display: none">planted-hidden</p><p hidden>planted-attribute</p><span aria-hidden="true">planted-aria</span>
<p style="font-size:0">planted-small</p>
</article></main>
<aside><p>planted-aside</p></aside>
<footer><p>planted-footer</p></footer>
</body></html>"""


def read(content: str | bytes, *, main_only: bool = True) -> Extraction:
    content = content.encode() if isinstance(content, str) else content
    settings = ExtractionSettings(main_content_only=main_only)
    return WebExtractor().extract(RawDocument(content, "page.html"), "text/html", settings)


def fragment(html: str) -> str:
    builder = TextBuilder()
    add_html(builder, html, main_only=False)
    return builder.build(title=None, metadata={}, media_type="", extractor="").text


def test_a_page_is_its_content_in_markdown() -> None:
    extraction = read(PAGE)
    assert "planted" not in extraction.text
    assert all(f"Paragraph {n} of the article" in extraction.text for n in range(12))
    assert extraction.text.endswith(
        "## Values\n\nLimits\n\n| Pump | Bar |\n| --- | --- |\n| P1 | 1.5 |\n| P1 | 2 to 3 |\n\n"
        "- First\n- Second\n  3. Inner `x = 1`\n\n```python\ndef f():\n    return 1\n```\n\n"
        "> Quoted words.\n\n![A red valve]"
    )
    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "Pump manual"), (2, "Values")]
    assert extraction.title == "Pump manual | Site"
    assert extraction.metadata == {
        "language": "en",
        "author": "Jo Doe",
        "published": "2024-05-01",
        "description": "How to open pumps.",
        "url": "https://example.com/pumps",
    }
    assert extraction.warnings == ()


def test_the_whole_page_keeps_navigation_but_nothing_hidden() -> None:
    text = read(PAGE, main_only=False).text
    assert all(f"planted-{word}" in text for word in ("nav one", "footer", "aside", "home"))
    hidden = ("script", "style", "comment", "hidden", "attribute", "aria", "small")
    assert not [word for word in hidden if f"planted-{word}" in text]


def test_a_page_of_links_is_kept_whole() -> None:
    links = "".join(f'<div class="hit"><a href="/{n}">Result number {n} of the search</a></div>' for n in range(30))
    extraction = read(f"<html><body><nav>planted-nav</nav>{links}</body></html>")
    assert all(f"Result number {n} of" in extraction.text for n in range(30))
    assert "planted-nav" not in extraction.text


def test_introduction_and_closing_note_stay_with_a_long_block() -> None:
    words = "Die schöne Frau hat einen Kaffee mit Kuchen gegessen und dabei gelächelt.\n" * 10
    text = read(f"<body><h1>Title</h1><p>My first paragraph.</p><pre>{words}</pre><p>A closing note.</p></body>").text
    assert text.startswith("# Title\n\nMy first paragraph.")
    assert text.endswith("A closing note.")


def test_elements_nested_deeper_than_lxml_reads_are_kept_and_reported() -> None:
    extraction = read(f"<body><h1>Top</h1>{'<div>' * 3000}<p>the deepest words</p>{'</div>' * 3000}</body>")
    assert "the deepest words" in extraction.text
    assert "levels deep" in extraction.warnings[0]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<meta charset=windows-1252><p>Grüße “x”</p>".encode("cp1252"), "Grüße “x”"),
        ('<?xml version="1.0" encoding="koi8-r"?><html><p>Обои</p></html>'.encode("koi8-r"), "Обои"),
        ("<p>Grüße</p>".encode("utf-16"), "Grüße"),
        ("<meta charset=iso-8859-1><p>Grüße aus UTF-8</p>".encode(), "Grüße aus UTF-8"),
        ("<meta charset=shift_jis><p>日本語の文章</p>".encode("cp932"), "日本語の文章"),
    ],
    ids=["cp1252", "koi8-r", "utf-16", "a lie", "shift-jis"],
)
def test_the_encoding_is_what_the_bytes_are(content: bytes, text: str) -> None:
    assert read(content).text == text


def test_self_closed_elements_of_xhtml_swallow_nothing() -> None:
    page = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="a.js"/></head>'
    text = read(page + '<body><a id="top"/><h1>Chapter</h1><p>Words<br/>and <![CDATA[more]]></p></body></html>').text
    assert text == "# Chapter\n\nWords\nand more"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p>two<p>three", "one\n\ntwo\n\nthree"),
        ("<p>a<b>b</b> <i>c</i>\n d&nbsp;e</p>", "ab c d e"),
        ("<div>x<div>y</div>z</div>", "x\n\ny\n\nz"),
        ("<ul><li><p>a</p><p>b</p></li></ul>", "- a\n\n  b"),
        ("<dl><dt>Bar</dt><dd>A unit.</dd></dl>", "- Bar\n  A unit."),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<ul><li><h3>Card</h3><p>text</p></li></ul>", "### Card\n\ntext"),
        ("<table><tr><td><p>left</p></td></tr></table>", "left"),
        ('<p>E is <math alttext="mc^2"><mi>planted</mi></math></p>', "E is $mc^2$"),
        ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
        ("<pre>```</pre>", "````\n```\n````"),
        ("<a href='#c'>Skip to content</a><p>x</p>", "x"),
        ("<p>see<sup class=reference>[3]</sup></p>", "see"),
        ("<select><option>planted</select><button>planted</button><p>x", "x"),
        ("<h2></h2><p></p><ul><li></li></ul>x", "x"),
    ],
)  # fmt: skip
def test_each_kind_of_element_has_its_form(html: str, text: str) -> None:
    assert fragment(html) == text


TABLES = {
    "inner table": (
        "<table><tr><td>a</td><td><table><tr><td>b</td><td>c</td></tr></table></td></tr></table>",
        "a\n\n|  |  |\n| --- | --- |\n| b | c |",
    ),
    "layout": ("<table role=presentation><tr><td>a</td><td>b</td></tr></table>", "a\n\nb"),
    "signs": (
        "<table><tr><th>Net</th><td>$</td><td>5</td></tr><tr><th>Tax</th><td>(</td><td>2</td></tr></table>",
        "|  |  |\n| --- | --- |\n| Net | $5 |\n| Tax | (2 |",
    ),
    "two header rows": (
        "<table><tr><th colspan=2>G</th></tr><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
        "| G / a | G / b |\n| --- | --- |\n| 1 | 2 |",
    ),
    "pipes": (
        "<table><tr><td>a|b</td><td>c</td></tr><tr><td>1</td><td>2</td></tr></table>",
        "| a\\|b | c |\n| --- | --- |\n| 1 | 2 |",
    ),
}


@pytest.mark.parametrize(("html", "text"), TABLES.values(), ids=TABLES)
def test_tables_are_tables_unless_they_only_place_things(html: str, text: str) -> None:
    assert fragment(html) == text


def test_a_page_that_shows_nothing_is_skipped() -> None:
    with pytest.raises(SkippedDocument) as caught:
        read("<html><body><div id=root></div><script>render()</script></body></html>")
    assert caught.value.reason == "no-text"


def test_author_and_date_are_taken_from_linked_data() -> None:
    data = '{"@graph": [{"@type": "Article", "author": [{"name": "A"}, {"name": "B"}], "datePublished": "2023-01-02"}]}'
    extraction = read(f'<script type="application/ld+json">{data}</script><p>text</p>')
    assert extraction.metadata == {"author": "A, B", "published": "2023-01-02"}


TAGS = (
    "<p> </p> <div> </div> <table> <tr> <td> <td/colspan=3/rowspan=2> <th> </table> <ul> <li> </ul> <ol> <h2> </h2> "
    "<pre> </pre> <code> </code> <a> </a> <br> <blockquote> </blockquote> <dl> <dt> <dd> <!-- --> <b> word two"
)
markup = st.lists(st.sampled_from(TAGS.split()), max_size=60)


@settings(deadline=None)
@given(markup, st.booleans())
def test_any_soup_of_tags_is_read_and_its_positions_are_exact(pieces: list[str], main_only: bool) -> None:
    builder = TextBuilder()
    add_html(builder, " ".join(["start", *pieces]), main_only=main_only)
    extraction = builder.build(title=None, metadata={}, media_type="", extractor="")
    assert "start" in extraction.text
    for heading in extraction.headings:
        assert extraction.text[heading.start :].startswith(f"## {heading.title}")


@pytest.mark.parametrize(
    "declared", ["Untitled Document", "- no title specified", "Microsoft Word - crane.doc", "crane_v3.docx"]
)
def test_a_title_that_a_program_wrote_gives_way_to_the_first_heading(declared: str) -> None:
    body = f"<h1>Crane manual</h1><p>{'Oil the bearings. ' * 30}</p>"
    assert read(f"<html><head><title>{declared}</title></head><body>{body}</body></html>").title == "Crane manual"
