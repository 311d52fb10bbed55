"""Articles of JATS, books of DocBook and topics of DITA are read as documents."""

from __future__ import annotations

import pytest

from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(content: str) -> Extraction:
    return extract(RawDocument(content.encode(), "a.xml"), ExtractionSettings())


def article(body: str, front: str = "", back: str = "") -> Extraction:
    return read(
        '<article xmlns:mml="http://www.w3.org/1998/Math/MathML"><front><journal-meta><journal-title>Pumps</journal-title>'
        "</journal-meta><article-meta><title-group><article-title>Wear of <italic>seals</italic></article-title>"
        f"</title-group>{front}</article-meta></front><body>{body}</body><back>{back}</back></article>"
    )


def book(content: str) -> Extraction:
    return read(f'<book xmlns="http://docbook.org/ns/docbook"><info><title>Manual</title></info>{content}</book>')


BEGIN = "# Wear of seals\n\nJournal: Pumps\n\n"


def test_front_of_an_article_is_its_title_its_facts_and_its_abstract():
    extraction = article(
        "<p>Text.</p>",
        '<article-id pub-id-type="doi">10.1/x</article-id><contrib-group><contrib><name><surname>Doe</surname>'
        '<given-names>Jane</given-names></name><xref ref-type="aff"><sup>1</sup></xref></contrib><contrib><name>'
        "<surname>Roe</surname><given-names>Rick</given-names></name></contrib></contrib-group><aff><label>1</label>"
        'Institute of Flow</aff><pub-date pub-type="epub"><day>4</day><month>2</month><year>2020</year></pub-date>'
        "<abstract><sec><title>Aim</title><p>To see.</p></sec></abstract><kwd-group><kwd>pump</kwd><kwd>seal</kwd>"
        "</kwd-group>",
    )
    assert extraction.title == "Wear of seals"
    assert extraction.text == (
        "# Wear of seals\n\nJournal: Pumps\ndoi: 10.1/x\nAuthors: Jane Doe, Rick Roe\n1 Institute of Flow\n"
        "Published (epub): 2020-02-04\nKeywords: pump, seal\n\n## Aim\n\nTo see.\n\nText."
    )


def test_titles_of_sections_are_headings_with_their_level_however_deep():
    names = ["One", "Two", "Three", "Four", "Five", "Six", "Seven"]
    body = "".join(f"<sec><title>{name}</title>" for name in names) + "<p>x</p>" + "</sec>" * 7
    extraction = article(body)
    assert [(heading.level, heading.title) for heading in extraction.headings[1:]] == [
        (level, name) for level, name in enumerate(names, start=2)
    ]
    assert extraction.text.endswith("###### Five\n\n###### Six\n\n###### Seven\n\nx")


def test_label_of_a_section_stands_in_its_heading():
    extraction = article("<sec><label>2.1</label><title>Methods</title><p>x</p></sec>")
    assert extraction.headings[1].title == "2.1 Methods"


def test_table_of_an_article_has_its_caption_and_notes():
    extraction = article(
        "<sec><title>Results</title><table-wrap><label>Table 1</label><caption><title>Wear.</title><p>In mm.</p>"
        "</caption><table><thead><tr><th>Pump</th><th>May</th></tr></thead><tbody><tr><td>A</td><td>0.1</td></tr></tbody></table>"
        "<table-wrap-foot><fn><p>Mean of five.</p></fn></table-wrap-foot></table-wrap></sec>"
    )
    assert extraction.text == (
        f"{BEGIN}## Results\n\nTable 1 Wear. In mm.\n\n| Pump | May |\n| --- | --- |\n| A | 0.1 |\n\nMean of five."
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>Since <xref>[1]</xref> at 10<sup>3</sup> h.</p><p><italic>Two</italic></p>", "Since [1] at 103 h.\n\nTwo"),
        (
            '<p>As: <list list-type="order"><list-item><p>one</p></list-item><list-item><p>two</p></list-item></list>'
            " so.</p>",
            "As:\n\n1. one\n2. two\n\nso.",
        ),
        (
            "<p>See <fig><label>Figure 1</label><caption><title>Rig.</title></caption><graphic/></fig> there.</p>",
            "See\n\nFigure 1 Rig.\n\nthere.",
        ),
        (
            "<disp-formula><label>(1)</label><alternatives><tex-math>\\documentclass{x}</tex-math><mml:math><mml:mi>E</mml:mi>"
            "<mml:mo>=</mml:mo></mml:math></alternatives></disp-formula>",
            "(1) E=",
        ),
        ("<disp-quote><p>So it is.</p></disp-quote>", "> So it is."),
        ("<p>See <boxed-text><p>one</p><p>two</p></boxed-text></p>", "See\n\none\n\ntwo"),
    ],
    ids=["inline", "list", "figure", "formula", "quotation", "box"],
)
def test_running_text_stays_together_and_blocks_stand_apart(body: str, text: str):
    assert article(body).text == BEGIN + text


def test_reference_is_one_line():
    back = (
        "<ref-list><title>References</title><ref><label>1</label><element-citation><person-group><name>"
        "<surname>Poe</surname><given-names>E</given-names></name></person-group>"
        "<article-title>Old pumps</article-title>"
        "<year>1990</year></element-citation></ref><ref><label>2</label><mixed-citation>"
        "Moe M. <article-title>New</article-title>. 2001.</mixed-citation></ref></ref-list>"
    )
    assert article("<p>x</p>", back=back).text == (
        f"{BEGIN}x\n\n## References\n\n1 E Poe, Old pumps, 1990\n\n2 Moe M. New. 2001."
    )


def test_book_has_chapters_lists_code_notes_and_tables():
    extraction = book(
        "<chapter><title>Running</title><para>Use <command>pump</command>.<footnote><para>Root only.</para></footnote>"
        "<indexterm><primary>start</primary></indexterm></para><itemizedlist><listitem><para>one</para></listitem>"
        "<listitem><para>two</para><orderedlist><listitem><para>inner</para></listitem></orderedlist></listitem>"
        "</itemizedlist><variablelist><varlistentry><term>-v</term><listitem><para>verbose</para></listitem>"
        "</varlistentry></variablelist><programlisting>if a &lt; b:\n    run()</programlisting>"
        "<section><title>Limits</title><table><title>Speeds</title><tgroup cols='2'><tbody><row><entry>EBADF</entry>"
        "<entry>no file</entry></row><row><entry>EIO</entry><entry>no pump</entry></row></tbody></tgroup></table>"
        "<note><title>Mind</title><para>Hot.</para></note></section></chapter>"
    )
    assert extraction.title == "Manual"
    assert extraction.text == (
        "# Manual\n\n## Running\n\nUse pump. (Root only.)\n\n- one\n- two\n  1. inner\n\n- -v\n  verbose\n\n"
        "```\nif a < b:\n    run()\n```\n\n### Limits\n\nSpeeds\n\n| EBADF | no file |\n"
        "| --- | --- |\n| EIO | no pump |"
        "\n\nMind\n\nHot."
    )
    assert [(heading.level, heading.title) for heading in extraction.headings] == [
        (1, "Manual"), (2, "Running"), (3, "Limits")
    ]  # fmt: skip


def test_topic_is_read_as_a_document():
    extraction = read(
        "<task id='t'><title>Start</title><taskbody><context><p>Cold.</p></context><steps><step><cmd>Press.</cmd>"
        "</step></steps></taskbody></task>"
    )
    assert extraction.text == "# Start\n\nCold.\n\n1. Press."


def test_articles_in_a_set_are_documents_below_each_other():
    one = "<article><front><article-meta><title-group><article-title>{}</article-title></title-group>"
    one += "</article-meta></front><body><p>x</p></body></article>"
    extraction = read(f"<set-of-articles>{one.format('First')}{one.format('Second')}</set-of-articles>")
    assert extraction.text == "# First\n\nx\n\n# Second\n\nx"


def test_records_with_the_names_of_articles_stay_records():
    extraction = read(
        "<list><article><id>1</id><name>x</name></article><article><id>2</id><name>y</name></article></list>"
    )
    assert extraction.text == "| id | name |\n| --- | --- |\n| 1 | x |\n| 2 | y |"
