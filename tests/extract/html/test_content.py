"""Main content of pages: the element that holds it, and the parts of it that only lead elsewhere."""

from __future__ import annotations

import pytest

from parquetry.extract.html.reader import WebExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

SUBJECTS = ("pump", "valve", "filter", "motor", "gauge", "piston", "gasket", "hose", "switch", "engine", "boiler")


def read(html: str) -> Extraction:
    return WebExtractor().extract(RawDocument(html.encode(), "page.html"), "text/html", ExtractionSettings())


def paragraphs(count: int, start: int = 0) -> str:
    return "".join(
        f"<p>Paragraph {number} says that the {SUBJECTS[number % len(SUBJECTS)]} has to be opened slowly, by hand, "
        f"and that nobody may touch its {SUBJECTS[(number + 3) % len(SUBJECTS)]} while it turns.</p>"
        for number in range(start, start + count)
    )


def links(text: str, count: int) -> str:
    return "<ul>" + "".join(f'<li><a href="/{n}">{text} {n}</a></li>' for n in range(count)) + "</ul>"


def teasers(text: str = "", count: int = 3) -> str:
    cards = "".join(f'<div><h3><a href="/{n}">Planted story number {n}</a></h3>{text}</div>' for n in range(count))
    return f"<div>{cards}</div>"


def test_the_smallest_element_with_most_of_the_found_text_is_the_content() -> None:
    """A field that the content finder missed stays; what was found outside stays, and a weather report does not."""
    weather = "<div class=slides><div>Planted weather: 12 degrees</div><div>Planted rates: 1.08</div></div>"
    core = f"<div><h1>Pumps</h1>{paragraphs(12, 1)}<form><p>kept 7</p></form></div>"
    text = read(f"<body><div>{paragraphs(1)}{weather}{core}{weather}</div>").text
    assert "Paragraph 0" in text
    assert "kept 7" in text
    assert "Planted" not in text


def test_posts_of_one_thread_stay_together() -> None:
    """The longest post alone holds most of the text."""
    posts = ("<p>kept question</p>", paragraphs(14), "<p>kept thanks</p>")
    thread = "".join(f'<div class="post">{post}</div>' for post in posts)
    text = read(f'<body><div>{thread}<div class="ranks">Planted ranks</div></div>').text
    assert "kept question" in text
    assert "kept thanks" in text


@pytest.mark.parametrize(("count", "kept"), [(4, False), (40, True)])
def test_a_list_of_links_goes_unless_it_is_most_of_the_page(count: int, kept: bool) -> None:
    text = read(
        f"<body><div><h1>Pumps</h1>{paragraphs(4)}{links('Another page of this site, number', count)}</div>"
    ).text
    assert ("Another page" in text) == kept


@pytest.mark.parametrize(("name", "kept"), [("part", True), ("Planted headline of another page of this site", False)])
def test_short_links_inside_the_found_text_stay_and_headlines_go(name: str, kept: bool) -> None:
    text = read(f"<body><div><h1>Pumps</h1>{paragraphs(5)}{links(name, 5)}{paragraphs(5, 5)}</div>").text
    assert (f"{name} 3" in text) == kept


def test_headings_that_lead_to_other_pages_go_with_their_texts() -> None:
    related = teasers("<p>Planted opening of it.</p>")
    text = read(f"<body><div><h1>Pumps</h1>{paragraphs(10)}{related}</div>").text
    assert "while it turns" in text
    assert "Planted" not in text


def test_questions_and_answers_with_their_sources_stay_in_a_page_of_results() -> None:
    """Each answer ends with a heading that links to its source; most of it is not a link."""
    answer = f"<p>An answer of several words, which nobody wants to lose: {SUBJECTS} and all that turns.</p>"
    results = "".join(f'<div><h2><a href="/r{n}">Result {n}</a></h2>{paragraphs(2, 2 * n)}</div>' for n in range(6))
    text = read(f'<body><main>{results}<div class="slides">{teasers(answer)}</div></main>').text
    assert text.count("An answer of several words") == 3


SAYS_ARTICLE = {
    "og:type": ('<meta property="og:type" content="article">', '<div class="entry-content">{}</div>'),
    "itemprop": ("", '<div itemprop="articleBody">{}</div>'),
    "one article": ("", "<article>{}</article>"),
}


@pytest.mark.parametrize(("head", "body"), SAYS_ARTICLE.values(), ids=SAYS_ARTICLE)
def test_a_page_that_says_that_it_is_one_article_is_that_article(head: str, body: str) -> None:
    """Without that, so little of the page is found that all of it would be kept."""
    around = "".join(
        f'<div><span>{number}</span> <a href="/{number}">Planted {number}</a></div>' for number in range(300)
    )
    page = f"<head>{head}</head><body>{body.format(paragraphs(5))}<div>{around}</div></body>"
    extraction = read(page)
    assert "Paragraph 4" in extraction.text
    assert "Planted" not in extraction.text
    assert extraction.warnings == ()


@pytest.mark.parametrize("tag", ["footer", 'div role="contentinfo"'])
@pytest.mark.parametrize(
    ("place", "inner", "kept"),
    [
        ("main", "<p>Written by the harbour authority in 2024.</p>", True),
        ("article", "<p>1. The tariff of 2023 applied until May.</p>", True),
        ("main", '<p><a href="/t">More about tariffs</a> <a href="/s">All stories</a></p>', False),
        ("div", "<p>Harbour authority, Quay street 5, telephone 040 1234.</p>", False),
    ],
    ids=["of the main part", "of an article", "links", "of the page"],
)
def test_a_footer_with_text_of_an_article_is_part_of_it(tag: str, place: str, inner: str, kept: bool) -> None:
    footer = f"<{tag}>{inner}</{tag.split()[0]}>"
    text = read(f"<body><{place}><h1>Tariffs</h1>{paragraphs(6)}{footer}</{place}></body>").text
    assert "Paragraph 5" in text
    assert any(word in text for word in ("Written by", "tariff of 2023", "About tariffs", "More about", "Quay")) is kept
