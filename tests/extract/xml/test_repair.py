"""XML that is not well-formed is repaired, and keeps its words."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring, tostring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.extract.markup import MarkupExtractor
from parquetry.extract.xml.repair import repair
from parquetry.extract.xml.tree import parse
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings


def repaired(text: str) -> str:
    root, warnings = parse(text)
    assert [warning for warning in warnings if warning.startswith("repaired, because it is not well-formed XML: ")]
    return tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<x><a>1</a><b>2</b>", "<x><a>1</a><b>2</b></x>"),
        ("<x><a>one</b> two</a> three</x>", "<x><a>one two</a> three</x>"),
        ("<x><b><i>t</b></i> u</x>", "<x><b><i>t</i></b> u</x>"),
        ("<x>AT&T, a?b=1&c=2 &amp; &#233;</x>", "<x>AT&amp;T, a?b=1&amp;c=2 &amp; é</x>"),
        ("<x>a < b, c <5 <b>d</b></x>", "<x>a &lt; b, c &lt;5 <b>d</b></x>"),
        ("<x>if a <b then <i>c</i></x>", "<x>if a &lt;b then <i>c</i></x>"),
        ("<x a=1 b='2' b=\"3\" c>t</x>", '<x a="1" b="2">t</x>'),
        ("<x a='b & &lt;c'>t &</x>", '<x a="b &amp; &lt;c">t &amp;</x>'),
        ("<x><c:e d:f='g'>t</c:e></x>", '<x><e f="g">t</e></x>'),
        ("<x>a\x01b&#2;c</x>", "<x>abc</x>"),
        ("<x><!-- a -- b -->t</x>", "<x>t</x>"),
        ("<x>t<![CDATA[ <open> ", "<x>t &lt;open&gt;</x>"),
        ("<x>t ]]> u</x>", "<x>t ]]&gt; u</x>"),
        ("<x>1</x><x>2</x>", "<document><x>1</x><x>2</x></document>"),
        ("before <x>1</x>", "<document>before <x>1</x></document>"),
        ("<x><?xml version='1.0'?><y/>t</x>", "<x><y />t</x>"),
        ("<x>t<!-- open <y>u</y></x>", "<x>t&lt;!-- open <y>u</y></x>"),
    ],
)
def test_fault_is_repaired_and_no_word_lost(text: str, expected: str):
    assert repaired(text) == expected


def test_warning_tells_the_first_fault_and_its_line():
    content = b'<?xml version="1.0"?>\n\n<x>\n<a>one\n</x>\n'
    extraction = MarkupExtractor().extract(RawDocument(content, "a.xml"), "application/xml", ExtractionSettings())
    assert extraction.text == "x\na: one"
    assert extraction.warnings == ("repaired, because it is not well-formed XML: mismatched tag: line 5, column 2",)


def test_what_is_well_formed_is_not_repaired():
    root, warnings = parse('<x xmlns:p="u"><p:a>t</p:a></x>')
    assert root[0].tag == "{u}a"
    assert not warnings


PIECES = ["<a>", "</a>", "<b c='d'>", "</b>", "<b c=d>", "<e/>", "<", ">", "&", "&amp;", "&#9;", "<!--", "-->", "<?",
          "?>", "<![CDATA[", "]]>", "<!X", "'", '"', "=", "/", "<a ", "<p:q r:s='t'>", "&#0;", "\x02", " ", "\n",
          "xmlns:a=''", "</", "<a\u00e9>"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_every_text_becomes_well_formed(pieces: list[str]):
    assert fromstring(repair("".join(pieces))).tag == "document"


@given(st.lists(st.sampled_from(["<a>", "</a>", "<b c='d'>", "</b>", "<", "&", "<e/>", "<b c"]), max_size=30))
def test_every_word_between_tags_stays(pieces: list[str]):
    text = "".join(f"{piece} word{place} " for place, piece in enumerate(pieces))
    kept = "".join(fromstring(repair(text)).itertext()).split()
    assert kept.count("word0") == min(1, len(pieces))
    assert [word for word in kept if word.startswith("word")] == [f"word{place}" for place in range(len(pieces))]
