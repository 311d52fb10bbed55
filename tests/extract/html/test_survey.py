"""Survey of a page: the letters of each block that the content finder found."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from parquetry.extract.html.survey import letters, survey

OPENING = "The pump has to be opened slowly and by hand, because its valve sticks."
FILTER = "Its filter is cleaned with cold water each Monday, before the first shift."
CLOSING = "At the end of the year the whole pump is sent back to the factory for tests."


def found_in(html: str, found: str) -> dict[str, int]:
    """Return the letters found in each block that has an id."""
    page = LexborHTMLParser(html)
    assert page.body is not None
    return {
        name: block.found for block in survey(page.body, found) if (name := block.node.attributes.get("id")) is not None
    }


def test_a_short_text_counts_as_found_only_between_the_texts_around_it() -> None:
    """The word in the menu is none of the content, though the content has the same word further down."""
    html = f"<p id=menu>Filter</p><p>{OPENING}</p><h2 id=heading>Filter</h2><p>{FILTER}</p>"
    assert found_in(html, f"{OPENING}\nFilter\n{FILTER}") == {"menu": 0, "heading": len("filter")}


def test_a_text_out_of_order_does_not_count_and_takes_no_other_along() -> None:
    """A text that the content finder moved to the top would otherwise leave no room for those before it."""
    html = f"<p id=first>{OPENING}</p><p id=second>{FILTER}</p><p id=moved>{CLOSING}</p>"
    assert found_in(html, f"{CLOSING}\n{OPENING}\n{FILTER}") == {
        "first": len(letters(OPENING)),
        "second": len(letters(FILTER)),
        "moved": 0,
    }


def test_a_paragraph_with_a_gap_counts_as_found() -> None:
    """The content finder leaves inline elements out, such as marks of footnotes."""
    html = f"<p id=gap>{OPENING} <code>open()</code> {FILTER}</p><p id=other>{OPENING} {CLOSING}</p>"
    whole = len(letters(f"{OPENING} open() {FILTER}"))
    assert found_in(html, f"{OPENING} {FILTER}") == {"gap": whole, "other": 0}
