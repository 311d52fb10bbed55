"""Made web pages of the kinds in which content is hard to find, with the words of their content."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_TEXT = (
    "valve pump river council budget harvest engine window market teacher signal bridge forest paper winter copper "
    "doctor island border cable garden letter museum number office parcel season ticket vessel village wagon yellow "
    "annual broken careful direct early final gentle heavy inner local narrow open public quiet rapid simple urgent "
    "builds carries decides enters follows gathers holds joins keeps leaves measures needs opens places raises sends"
)
_WORDS = _TEXT.split()


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page and the text of its content."""

    name: str
    kind: str
    html: str
    expected: str
    """words of the content, in order"""


class _Page:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.wanted: list[str] = []

    def words(self, least: int, most: int) -> str:
        return " ".join(self.rng.choice(_WORDS) for _ in range(self.rng.randint(least, most)))

    def said(self, text: str) -> str:
        self.wanted.append(text)
        return text

    def sentence(self, least: int = 9, most: int = 18) -> str:
        return self.words(least, most).capitalize() + "."

    def paragraphs(self, count: int) -> list[str]:
        return [
            f"<p>{self.said(' '.join(self.sentence() for _ in range(self.rng.randint(2, 5))))}</p>"
            for _ in range(count)
        ]

    def table(self, inner: str = "") -> str:
        """Return a table of content; `inner` is the form of its last column: {0} stands for the text."""
        rows = []
        for _ in range(self.rng.randint(4, 9)):
            cells = [self.said(self.words(1, 3)) for _ in range(2)] + [self.said(str(self.rng.randint(10, 9999)))]
            form = inner or "{0}"
            rows.append(f"<tr><td>{cells[0]}</td><td>{cells[1]}</td><td>{form.format(cells[2])}</td></tr>")
        return f"<table><tbody>{''.join(rows)}</tbody></table>"

    def list(self) -> str:
        return f"<ul>{''.join(f'<li>{self.said(self.words(3, 9))}</li>' for _ in range(self.rng.randint(3, 7)))}</ul>"

    def teasers(self, count: int) -> str:
        """Return cards that lead to other pages: none of it is content."""
        box = self.rng.choice(("grid-4", "c-stack", "more-stories", "teaser-list", "module"))
        heading = self.rng.choice(("More stories", "Most read", "You may also like", "Latest", "Read next"))
        cards = "".join(
            f'<div class="card"><h3><a href="/s{n}">{self.words(5, 9)}</a></h3><p>{self.sentence()}</p></div>'
            for n in range(count)
        )
        return f'<div class="{box}"><h2>{heading}</h2>{cards}</div>'

    def links(self, count: int) -> str:
        items = "".join(f'<li><a href="/l{n}">{self.words(2, 6)}</a></li>' for n in range(count))
        return f'<div class="{self.rng.choice(("box", "rail", "list-b"))}"><ul>{items}</ul></div>'

    def whole(self, main: str) -> str:
        menu = "".join(f'<li><a href="/m{n}">{self.words(1, 2)}</a></li>' for n in range(8))
        return (
            f"<!DOCTYPE html><html><head><title>{self.words(3, 5)}</title></head><body><header><ul>{menu}</ul></header>"
            f'<div id="page">{main}</div><footer><p>{self.sentence()}</p></footer></body></html>'
        )


def _news(page: _Page) -> str:
    head = f"<h1>{page.said(page.words(5, 9))}</h1>"
    text = page.paragraphs(page.rng.randint(5, 12))
    place = page.rng.choice(("before", "after", "inside", "all"))
    if place in ("inside", "all"):
        text.insert(len(text) // 2, page.teasers(2))
    before = page.teasers(3) if place in ("before", "all") else ""
    after = page.teasers(6) + page.links(8) if place in ("after", "all") else ""
    tag = page.rng.choice(("article", 'div class="story"'))
    return f"{before}<{tag}>{head}{''.join(text)}</{tag.split()[0]}>{after}"


def _news_flat(page: _Page) -> str:
    """Teasers and links are brothers of the paragraphs."""
    head = f"<h1>{page.said(page.words(5, 9))}</h1>"
    text = page.paragraphs(page.rng.randint(6, 10))
    return f"<div>{head}{''.join(text)}{page.teasers(5)}{page.links(6)}</div>"


def _documentation(page: _Page) -> str:
    parts = [f"<h1>{page.said(page.words(2, 4))}</h1>"]
    for _ in range(page.rng.randint(3, 5)):
        parts += [f"<h2>{page.said(page.words(2, 4))}</h2>", *page.paragraphs(1), page.list()]
        parts += [page.table(), f"<pre><code>{page.said(page.words(6, 12))}</code></pre>"]
    return f'<div class="side">{page.links(12)}</div><div class="body">{"".join(parts)}</div>'


def _forum(page: _Page) -> str:
    title = f"<h1>{page.said(page.words(4, 8))}</h1>"
    posts = "".join(f'<div class="post">{"".join(page.paragraphs(2))}</div>' for _ in range(page.rng.randint(3, 7)))
    return f"{title}<div>{posts}</div>{page.links(8)}"


def _product(page: _Page) -> str:
    title = f"<h1>{page.said(page.words(2, 5))}</h1>"
    return f"<div>{title}{''.join(page.paragraphs(2))}{page.list()}{page.table()}</div>{page.teasers(6)}"


def _mostly_links(page: _Page) -> str:
    title = f"<h1>{page.said(page.words(2, 5))}</h1>"
    items = "".join(
        f'<li><a href="/i{n}">{page.said(page.words(3, 8))}</a></li>' for n in range(page.rng.randint(15, 40))
    )
    return f"{title}{''.join(page.paragraphs(1))}<div><ul>{items}</ul></div>"


def _tables(inner: str) -> Callable[[_Page], str]:
    def made(page: _Page) -> str:
        title = f"<h1>{page.said(page.words(3, 6))}</h1>"
        before, table, after = "".join(page.paragraphs(3)), page.table(inner), "".join(page.paragraphs(2))
        return f"<article>{title}{before}{table}{after}</article>"

    return made


KINDS: dict[str, Callable[[_Page], str]] = {
    "news": _news,
    "news, flat": _news_flat,
    "documentation": _documentation,
    "forum": _forum,
    "product": _product,
    "mostly links": _mostly_links,
    "nested tables": _tables("<table><tr><td>{0}</td></tr></table>"),
    "headings in cells": _tables("<h4>{0}</h4>"),
    "code in cells": _tables("<pre>{0}</pre>"),
}


def made_pages(count: int, seed: int) -> Iterator[MadePage]:
    """Yield `count` pages of each kind; the same for the same seed."""
    for kind, make in KINDS.items():
        for number in range(count):
            page = _Page(random.Random(f"{seed} {kind} {number}"))
            html = page.whole(make(page))
            yield MadePage(f"{kind} {number}", kind, html, "\n".join(page.wanted))
