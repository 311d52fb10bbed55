"""Org and AsciiDoc: headings, tables and code in the form of Markdown."""

from __future__ import annotations

import pytest

from parquetry.errors import SkippedDocument
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(text: str, name: str) -> Extraction:
    return extract(RawDocument(text.encode(), name), ExtractionSettings(ocr=False))


def org(text: str) -> Extraction:
    return read(text, "a.org")


def adoc(text: str) -> Extraction:
    return read(text, "a.adoc")


def test_headings_of_org_have_no_state_priority_and_tags():
    extraction = org(
        "#+TITLE: Harbour\n#+AUTHOR: Åse\n#+OPTIONS: toc:nil\n* TODO [#A] Cranes :work:old:\nx\n** Blue\ny"
    )
    assert extraction.text == "# Cranes\n\nx\n\n## Blue\n\ny"
    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "Cranes"), (2, "Blue")]
    assert (extraction.title, extraction.metadata) == ("Harbour", {"author": "Åse"})
    assert extraction.media_type == "text/x-org"
    assert org("* Cranes\nx").title == "Cranes"


def test_comments_and_properties_of_org_go():
    extraction = org(
        "# planted\n* A\n  SCHEDULED: <2024-05-06>\n:PROPERTIES:\n:ID: planted\n:END:\nx\n#+begin_comment\nplanted\n"
        "#+end_comment\n* COMMENT planted\nplanted\n** planted\nplanted\n* B\ny"
    )
    assert extraction.text == "# A\n\nx\n\n# B\n\ny"


def test_tables_code_and_links_of_org():
    extraction = org(
        "See [[https://x.org][the site]] and [[https://y.org]].\n#+CAPTION: Counts\n| Name | n |\n"
        "|------+---|\n| Blue | 3 |\n\n"
        "| a | b |\n#+BEGIN_SRC python\nx = 1 # kept\n* kept\n#+END_SRC\n#+begin_quote\nquoted\n#+end_quote"
    )
    assert extraction.text == (
        "See the site and https://y.org.\n\nCounts\n\n| Name | n |\n| --- | --- |\n| Blue | 3 |\n\n"
        "|  |  |\n| --- | --- |\n| a | b |\n\n```python\nx = 1 # kept\n* kept\n```\n\nquoted"
    )
    assert extraction.headings == ()


@pytest.mark.parametrize("opened", ["#+begin_src c", "#+begin_comment", ":PROPERTIES:"])
def test_a_block_of_org_without_an_end_hides_nothing(opened: str):
    assert "planted" in org(f"{opened}\nplanted").text


def test_headings_of_asciidoc_of_one_line_and_of_two():
    extraction = adoc(
        "= Harbour\n:toc:\n:description: How it works\n\n== Cranes\nx\n\nBlue cranes\n~~~~~~~~~~~\ny\n\n"
        "==== Deep\nz\n\n"
        "text\n== no heading"
    )
    assert [(heading.level, heading.title) for heading in extraction.headings] == [
        (1, "Harbour"), (2, "Cranes"), (3, "Blue cranes"), (4, "Deep"),
    ]  # fmt: skip
    assert extraction.text.endswith("### Blue cranes\n\ny\n\n#### Deep\n\nz\n\ntext\n== no heading")
    assert (extraction.title, extraction.metadata) == ("Harbour", {"description": "How it works"})
    assert extraction.media_type == "text/asciidoc"


def test_comments_and_marks_of_blocks_of_asciidoc_go():
    extraction = adoc(
        "// planted\na link:https://x.org[site] https://y.org[]\n\n////\nplanted\n////\nifdef::x[]\n[NOTE]\n====\nb\n====\nendif::[]"
    )
    assert extraction.text == "a site https://y.org\n\nb"


def test_tables_and_code_of_asciidoc():
    extraction = adoc(
        '.Counts\n[cols="1,2",options="header"]\n|===\n|Name |n\n\n|Blue | 3\n|Red\n|4\n2+|both\n|===\n\n'
        "[source,ruby]\n----\nputs 1 // kept\n== kept\n----"
    )
    assert extraction.text == (
        "Counts\n\n| Name | n |\n| --- | --- |\n| Blue | 3 |\n| Red | 4 |\n| both |  |\n\n```ruby\n"
        "puts 1 // kept\n== kept\n```"
    )
    assert extraction.headings == ()


def test_cells_of_asciidoc_on_lines_of_their_own_are_divided_by_the_columns_told():
    text = adoc('[cols="2*"]\n|===\n|a\n|b\n|c\n|d\n|===').text
    assert text == "|  |  |\n| --- | --- |\n| a | b |\n| c | d |"


def test_a_table_of_asciidoc_whose_cells_are_not_certain_stays_as_lines():
    assert adoc("|===\n|a |b\n|c\n|===").text == "|a |b\n|c"
    lines = ".2+|a |b\n|c\n.2+|d |e\n|f"
    assert adoc(f"|===\n{lines}\n|===").text == lines
    wide = "".join("20+|a\n" for _ in range(20)).strip()
    assert adoc(f"|===\n{wide}\n|===").text == wide


@pytest.mark.parametrize("opened", ["----", "////", "|===", "....", "```c"])
def test_a_block_of_asciidoc_without_an_end_hides_nothing(opened: str):
    assert "planted" in adoc(f"{opened}\nplanted").text


def test_attributes_that_asciidoc_gives_values_stand_for_these():
    settings = ":version: 2.1\n:product: Oak {version}\n"
    text = adoc(f"= Guide\n{settings}\n== {{product}}\n\nRun {{product}}, not \\{{product}} or {{other}}.\n").text
    assert "## Oak 2.1\n\nRun Oak 2.1, not \\{product} or {other}." in text


def test_values_of_attributes_lengthen_a_text_up_to_a_bound():
    text = f":a: {'word ' * 90}\n\n" + "{a}{a}{a}\n\n" * 2000
    assert 100_000 < len(adoc(text).text) < len(text) + 100_000


def test_settings_alone_are_no_text():
    with pytest.raises(SkippedDocument, match="no-text: the file holds only white space, comments and settings"):
        org("#+OPTIONS: x\n# c")
