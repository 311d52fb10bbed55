"""Markdown: text unchanged, headings as CommonMark defines them."""

from __future__ import annotations

import pytest

from parquetry.errors import SkippedDocument
from parquetry.extract.markdown import MarkdownExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(text: str) -> Extraction:
    document = RawDocument(text.encode(), "page.md")
    return MarkdownExtractor().extract(document, "text/markdown", ExtractionSettings())


def outline(extraction: Extraction) -> list[tuple[int, str]]:
    return [(heading.level, heading.title) for heading in extraction.headings]


def test_both_kinds_of_headings_are_found_at_their_lines() -> None:
    extraction = read("Intro.\n\n# One *fine* `day` #\n\ntext\n\nTwo\nlines\n---\n\ntext\n### [Three](x)\n")
    assert outline(extraction) == [(1, "One fine day"), (2, "Two lines"), (3, "Three")]
    starts = [extraction.text[heading.start :].split("\n")[0] for heading in extraction.headings]
    assert starts == ["# One *fine* `day` #", "Two", "### [Three](x)"]
    assert extraction.title == "One fine day"


@pytest.mark.parametrize(
    "text",
    [
        "```\n# comment\n```",
        "~~~sh\n# comment\n\n# more\n~~~",
        "    # indented code",
        "#no space",
        "####### seven",
        "\\# escaped",
        "> # quoted",
        "- # in a list",
        "<div>\n# in html\n</div>",
        "a | b\n--- | ---\n1 | 2",
        "```\n# never closed",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert outline(read(f"word\n\n{text}\n")) == []


def test_code_at_the_very_start_is_no_heading_and_shifts_none() -> None:
    extraction = read("    # code\n\n# Real\n")
    assert outline(extraction) == [(1, "Real")]
    assert extraction.text[extraction.headings[0].start :] == "# Real"


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2003\u00a0"], ids=["non-breaking", "ideographic", "two"])
def test_heading_after_a_space_that_is_none_to_markdown_begins_with_the_text(space: str) -> None:
    extraction = read(f"{space}Leave\n===\n\nThirty days.\n\n# Notice\n\nA month.\n")
    assert outline(extraction) == [(1, "Leave"), (1, "Notice")]
    starts = [extraction.text[heading.start :].split("\n")[0] for heading in extraction.headings]
    assert (starts, extraction.headings[0].start) == (["Leave", "# Notice"], 0)


def test_yaml_front_matter_becomes_title_and_metadata() -> None:
    extraction = read(
        "---\ntitle: Pump manual\ntags: [pumps, safety]\ndate: 2024-05-01\n"
        "draft: false\nnested: {a: 1}\n---\n# Start\nRead on."
    )
    assert extraction.title == "Pump manual"
    assert extraction.metadata == {"tags": "pumps, safety", "date": "2024-05-01", "draft": False}
    assert extraction.text == "# Start\nRead on."
    assert extraction.headings[0].start == 0


def test_toml_front_matter_is_read_too() -> None:
    extraction = read('+++\ntitle = "Pumps"\n+++\nText.')
    assert (extraction.title, extraction.text) == ("Pumps", "Text.")


def test_front_matter_that_is_no_yaml_stays_and_is_reported() -> None:
    extraction = read("---\ntitle: [unclosed\n---\nText.")
    assert "unclosed" in extraction.text
    assert extraction.warnings[0].startswith("front matter could not be read")


def test_rules_around_a_paragraph_are_not_front_matter() -> None:
    extraction = read("---\nJust a sentence.\n---\nText.")
    assert "Just a sentence." in extraction.text
    assert extraction.warnings == ()


def test_an_alias_bomb_in_front_matter_is_not_expanded() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    extraction = read(f"---\n{bomb}title: Small\n---\nText.")
    assert extraction.title == "Small"
    assert sum(len(str(value)) for value in extraction.metadata.values()) < 100


def test_text_is_kept_as_it_is() -> None:
    source = "A [link](http://example.com) and **bold**.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx  = 1\n```"
    assert read(source).text == source


def test_an_empty_page_is_skipped() -> None:
    with pytest.raises(SkippedDocument) as caught:
        read("\n \n")
    assert caught.value.reason == "no-text"
