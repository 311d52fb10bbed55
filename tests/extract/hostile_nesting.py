"""Web pages of nested elements and nested tables."""

from __future__ import annotations

from tests.extract.hostile_pages import BODY
from tests.extract.hostile_shapes import Hostile, halves, nested, repeated

DEEP: dict[str, Hostile] = {
    f"html: nested {tag}": nested("a.html", f"<{tag}>", f"</{tag}>", "x", BODY)
    for tag in ("div", "span", "blockquote", "ul", "i", "section", "table", "small", "form", "x-y", "math", "svg")
} | {
    "html: nested div, text": nested("a.html", "<div>x", "y</div>", "x", BODY),
    "html: nested span, text": nested("a.html", "<span>x", "y</span>", "x", BODY),
    "html: nested blockquote, text": nested("a.html", "<blockquote>x", "y</blockquote>", "x", BODY),
    "html: nested q": nested("a.html", "<q>x", "y</q>", "x", BODY),
    "html: nested lists": nested("a.html", "<ul><li>x", "</li></ul>", "x", BODY),
    "html: nested lists, open": repeated("a.html", "<ul><li>x", BODY),
    "html: nested lists, numbered": repeated("a.html", '<ol start="999999999"><li>x', BODY),
    "html: nested lists, within cells": repeated("a.html", "<table><tr><td><ul><li>x", BODY),
    "html: nested definitions": repeated("a.html", "<dl><dt>x<dd>y", BODY),
    "html: nested lists in quotes": repeated("a.html", "<blockquote><ul><li>x", BODY),
    "html: nested tables": nested("a.html", "<table><tr><td>x", "</td></tr></table>", "x", BODY),
    "html: nested tables, two cells": nested("a.html", "<table><tr><td>x<td>", "</td></tr></table>", "x", BODY),
    "html: nested tables, open": repeated("a.html", "<table><tr><td>x", BODY),
    "html: nested tables, rows": repeated("a.html", "<table><tr><td>x<td>y<tr><td>z<td>", BODY),
    "html: nested tables, shallow": repeated("a.html", "<table><tr><td>x<td>y" * 30 + "</table>" * 30, BODY),
    "html: nested formulas": nested("a.html", "<math><mrow>", "</mrow></math>", "<mi>x</mi>", BODY),
    "html: nested rows of formulas": nested("a.html", "<mrow>", "</mrow>", "<mi>x</mi>", f"{BODY}<math>", "</math>"),
    "html: formulas": repeated("a.html", "<math><mi>x</mi></math>", BODY),
    "html: formulas, open": repeated("a.html", "<math><mi>x", BODY),
    "html: formulas with sources": nested(
        "a.html", '<math><annotation encoding="x">', "</annotation></math>", "x", BODY
    ),
    "html: formulas around divs": nested("a.html", "<math><mtext><div>", "</div></mtext></math>", "x", BODY),
    "html: nested code": nested("a.html", "<b><code>", "</code></b>", "x", BODY),
    "html: nested pre": nested("a.html", "<div><pre>", "</pre></div>", "x", BODY),
    "html: nested details": nested("a.html", "<details><summary>x</summary>", "</details>", "x", BODY),
    "html: nested headings": nested("a.html", "<div><h2>", "</h2></div>", "x", BODY),
    "html: nested hidden": nested("a.html", "<div hidden>", "</div>", "x", BODY),
    "html: nested captions": nested("a.html", "<table><caption>x", "</caption></table>", "x", BODY),
    "html: nested menus": nested("a.html", '<div class="menu">x', "</div>", "x", BODY),
    "html: lists side by side": repeated("a.html", "<ul><li>x</li></ul>", BODY),
    "html: items": repeated("a.html", "<li>x", f"{BODY}<ul>"),
    "html: items of cards": repeated("a.html", "<ul><li>x", f"{BODY}", "<h2>x</h2>"),
    "html: quotes side by side": repeated("a.html", "<blockquote>x</blockquote>", BODY),
    "html: quotes of lines": halves("a.html", "<blockquote>", "x<br>", BODY),
    "html: divs with text": halves("a.html", "<div>", "<p>x</p>", BODY),
    "html: lists of lines": halves("a.html", "<ul><li>", "x<br>", BODY),
    "html: boilerplate": repeated("a.html", '<div class="menu"><p>x</p></div>', BODY),
    "html: long class": repeated("a.html", "sidebar", f'{BODY}<div class="', '">x</div>'),
    "html: long class of signs": repeated("a.html", "-_", f'{BODY}<div class="', '">x</div>'),
}

TABLES: dict[str, Hostile] = {
    "html: rows": repeated("a.html", "<tr><td>a<td>b", f"{BODY}<table>"),
    "html: cells": repeated("a.html", "<td>a", f"{BODY}<table><tr>"),
    "html: empty cells": repeated("a.html", "<td>", f"{BODY}<table><tr><td>a<td>b"),
    "html: colspan": repeated("a.html", "<tr><td colspan=1000>a<td>b", f"{BODY}<table>"),
    "html: rowspan": repeated("a.html", "<td rowspan=65534>a", f"{BODY}<table><tr>"),
    "html: rowspan, rows": repeated("a.html", "<tr><td rowspan=1000>a<td>b", f"{BODY}<table>"),
    "html: rowspan by colspan": repeated("a.html", "<tr><td rowspan=1000 colspan=1000>a<td>b", f"{BODY}<table>"),
    "html: names by colspan": repeated("a.html", f"<tr><th colspan=1000>{'name ' * 20}", f"{BODY}<table>"),
    "html: names by colspan, one": repeated("a.html", f"<tr><th colspan=1000>{'name ' * 400}", f"{BODY}<table>"),
    "html: one wide row": repeated("a.html", "<tr><td>a<td>b", f"{BODY}<table><tr>{'<td>a' * 200}"),
    "html: wide row, narrow rows": halves("a.html", "<td>a", "<tr><td>a<td>b", f"{BODY}<table><tr>"),
    "html: wide names": repeated("a.html", "<tr><td>a<td>b", f"{BODY}<table><tr>{'<th>' + 'n' * 900:s}<th>b"),
    "html: wide names, many": repeated("a.html", "<tr><td>a", f"{BODY}<table><tr>" + f"<th>{'name ' * 50}" * 40),
    "html: small tables": repeated("a.html", "<table><tr><td>a<td>b</table>", BODY),
    "html: signs": repeated("a.html", "<td>$<td>)", f"{BODY}<table><tr>"),
    "html: tables in lists": repeated("a.html", "<tr><td>a<td>b", f"{BODY}<ul><li>x<table>"),
    "html: sections": repeated("a.html", "<tbody><tr><td>a<td>b", f"{BODY}<table>"),
    "html: number cells": repeated("a.html", "1,", f"{BODY}<table><tr><td>", "x<td>b<tr><td>c<td>d</table>"),
}  # fmt: skip
