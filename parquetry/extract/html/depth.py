"""Limits the nesting depth of pages, because the time to parse and read them grows with the depth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MAX_DEPTH = 512
"""open elements; browsers have the same limit (Blink: `maximumHTMLParserDOMTreeDepth`)"""
MAX_FORMATTING = 16
"""formatting elements open at a time; a parser reopens unclosed ones in every paragraph"""

MAX_ATTRIBUTES = 500
"""attributes of an element; each is compared with all before it"""
_MANY_CHARACTERS = 5000
"""characters of a start tag above which its attributes are counted, and of a declaration above which it is removed"""

_TAG = re.compile(r"<(?:(/?)([a-zA-Z][^\s/>]{0,40})|(!--)|(?=[!?]))")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE_OR_END = re.compile(r"=\s*+([\"'])|>")


_ATTRIBUTE = re.compile(r"""[\s/]*+[^\s/>=][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?""")


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_VOID = _set("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
_OUTERMOST = _set("html head body")
_RAW = _set("script style textarea title xmp iframe noembed noframes")
_FORMATTING = _set("a b big code em font i nobr s small strike strong tt u")
_FOREIGN = _set("svg math")
_SCOPE = _set("applet caption table td th marquee object template svg math")
_CLOSES_PARAGRAPH = _set(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr listing main menu nav ol p plaintext pre search section summary table ul"
)
_SPECIAL = _SCOPE | _CLOSES_PARAGRAPH | _set("button colgroup dd dt frameset li noscript select tbody tfoot thead tr")
_IN_LIST = _SPECIAL - _set("address div p li dd dt")
_CELLS = _set("td th")
_SECTIONS = _set("tbody thead tfoot")
_IMPLIED: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (_set("li"), _IN_LIST),
    "dd": (_set("dd dt"), _IN_LIST),
    "dt": (_set("dd dt"), _IN_LIST),
    "td": (_CELLS, _set("table template")),
    "th": (_CELLS, _set("table template")),
    "tr": (_set("tr"), _set("table template")),
    "tbody": (_SECTIONS, _set("table template")),
    "thead": (_SECTIONS, _set("table template")),
    "tfoot": (_SECTIONS, _set("table template")),
    "option": (_set("option"), _set("select template")),
    "button": (_set("button"), _SCOPE),
    "rt": (_set("rt rp"), _SPECIAL | {"ruby"}),
    "rp": (_set("rt rp"), _SPECIAL | {"ruby"}),
}
"""element -> the elements that its start tag closes, and those that limit this (HTML, 13.2.6)"""
_PARAGRAPH = _set("p")
_BUTTON_SCOPE = _SCOPE | {"button"}


def without_depth(html: str) -> tuple[str, int]:
    """Limit the nesting depth of a page, keeping its text; deeper blocks become lines.

    An element with more than `MAX_ATTRIBUTES` attributes keeps the first ones.

    Returns:
        The page, and the number of elements removed from it.
    """
    nesting = _Nesting()
    pieces: list[str] = []
    place = 0
    for start, end, closing, name, tag in _tags(html, nesting):
        if not name:
            pieces.append(html[place:start])
            place = end
            continue
        replaced = nesting.close(name) if closing else nesting.open(name, tag)
        if replaced is not None:
            pieces += [html[place:start], replaced]
            place = start + len(tag)
        elif len(tag) > _MANY_CHARACTERS and (kept := _length_of_attributes(tag, end - start)) < len(tag):
            pieces += [html[place : start + kept], "/>" if tag.endswith("/>") else ">"]
            place = start + len(tag)
    return "".join([*pieces, html[place:]]) if pieces else html, nesting.taken_out


def _tags(html: str, nesting: _Nesting) -> Iterator[tuple[int, int, bool, str, str]]:
    """Yield tags: the offsets of `<` and of the end of the name, True for an end tag, the name, and the whole tag.

    Oversized or unterminated declarations and instructions are yielded without a name and with their end as the second
    offset.
    """
    place = 0
    while (found := _TAG.search(html, place)) is not None:
        place = found.end()
        if found[3]:
            comment = _COMMENT_END.search(html, max(found.end() - 2, 0))
            if comment is None:
                return
            place = comment.end()
        elif not found[2]:
            place = html.find(">", found.end()) + 1 or len(html)
            if place - found.start() > _MANY_CHARACTERS or html[place - 1] != ">":
                yield found.start(), place, False, "", ""
        else:
            place = _end_of_tag(html, found.end())
            name = found[2].lower()
            yield found.start(), found.end(), bool(found[1]), name, html[found.start() : place]
            if found[1] or name not in _RAW | {"plaintext"} or nesting.in_foreign:
                continue
            raw_end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(html, place)
            if raw_end is None:
                return
            place = raw_end.start()


def _end_of_tag(html: str, place: int) -> int:
    while (found := _ATTRIBUTE_OR_END.search(html, place)) is not None:
        if not found[1]:
            return found.end()
        place = html.find(found[1], found.end()) + 1
        if not place:
            break
    return len(html)


def _length_of_attributes(tag: str, place: int) -> int:
    """Return the offset in a tag at which the kept attributes end."""
    for _ in range(MAX_ATTRIBUTES):
        found = _ATTRIBUTE.match(tag, place)
        if found is None:
            return len(tag)
        place = found.end()
    return place if _ATTRIBUTE.match(tag, place) else len(tag)


class _Nesting:
    """The stack of open elements as a parser keeps it; its depth is never underestimated."""

    def __init__(self) -> None:
        self.taken_out = 0
        self._open: list[str] = []
        self._count: Counter[str] = Counter()
        self._formatting: list[tuple[str, str]] = []
        """name and start tag of the formatting elements without an end tag so far"""
        self._dropped: Counter[str] = Counter()

    @property
    def in_foreign(self) -> bool:
        return bool(self._count["svg"] or self._count["math"])

    def open(self, name: str, tag: str) -> str | None:
        """Process a start tag; return its replacement if the element is to be removed, else None."""
        if name in _VOID or name in _OUTERMOST or (tag.endswith("/>") and self.in_foreign):
            return None
        if name in _CLOSES_PARAGRAPH and self._count["p"]:
            self._pop_to(_PARAGRAPH, _BUTTON_SCOPE)
        if name in _IMPLIED:
            closed, scope = _IMPLIED[name]
            if any(self._count[one] for one in closed):
                self._pop_to(closed, scope)
        elif name in ("a", "nobr"):
            self.close(name)
        elif name == "table" and self._open and self._open[-1] in ("table", "tbody", "thead", "tfoot", "tr"):
            self._pop_to(_set("table"), frozenset())
        if len(self._open) >= MAX_DEPTH or (name in _FORMATTING and not self._may_format(name, tag)):
            self._dropped[name] += 1
            self.taken_out += 1
            return "<br>" if name in _SPECIAL else ""
        self._open.append(name)
        self._count[name] += 1
        return None

    def close(self, name: str) -> str | None:
        """Process an end tag; return its replacement if its start tag was removed, else None."""
        if self._dropped[name]:
            self._dropped[name] -= 1
            return ""
        if name in _FORMATTING:
            self._unformat(name)
        if not self._count[name]:
            return None
        if name in _FORMATTING or name == "form":
            self._take(name)
        else:
            scope = _set("template") if name in ("table", "template") else _SCOPE - {name}
            if name in _CELLS | _SECTIONS | {"tr", "caption"}:
                scope = _set("table template")
            elif name not in _SPECIAL:
                scope = _SPECIAL
            self._pop_to(frozenset({name}), scope)
        return None

    def _may_format(self, name: str, tag: str) -> bool:
        # A parser keeps at most three identical ones.
        if self._formatting.count((name, tag)) < 3:
            if len(self._formatting) >= MAX_FORMATTING:
                return False
            self._formatting.append((name, tag))
        return True

    def _unformat(self, name: str) -> None:
        for place in range(len(self._formatting) - 1, -1, -1):
            if self._formatting[place][0] == name:
                del self._formatting[place]
                return

    def _pop_to(self, names: frozenset[str], scope: frozenset[str]) -> None:
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place] in names:
                self._cut(place, self._opened_again(place + 1))
                return
            if self._open[place] in scope:
                return

    def _take(self, name: str) -> None:
        """Close a formatting element: blocks opened inside stay open, and other formatting is reopened."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place] == name:
                above = self._open[place + 1 :]
                is_left = any(one in _SPECIAL for one in above)
                self._cut(place, above if is_left else self._opened_again(place + 1))
                return
            if self._open[place] in _SCOPE:
                return

    def _opened_again(self, place: int) -> list[str]:
        """Return the formatting elements from a position on that have no end tag so far."""
        listed = Counter(name for name, _ in self._formatting)
        again = []
        for name in self._open[place:]:
            if listed[name]:
                listed[name] -= 1
                again.append(name)
        return again

    def _cut(self, place: int, kept: list[str]) -> None:
        """Replace the open elements from a position on by those to keep."""
        self._count.subtract(self._open[place:])
        self._count.update(kept)
        self._open[place:] = kept
