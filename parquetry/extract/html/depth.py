"""Keeps pages from being nested without end: parsing and reading take a time that grows with the depth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MAX_DEPTH = 512
"""open elements; browsers stop here, too (Blink: `maximumHTMLParserDOMTreeDepth`)"""
MAX_FORMATTING = 16
"""formatting elements that are open at a time: a parser opens those that are not closed again in every paragraph"""

MAX_ATTRIBUTES = 500
"""of an element; each is compared with all before it"""
_MANY_CHARACTERS = 5000
"""of a start tag from which its attributes are counted, and of a declaration from which it is left out"""

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
"""element -> those that its start tag closes, and those beyond which it closes nothing (HTML, 13.2.6)"""
_PARAGRAPH = _set("p")
_BUTTON_SCOPE = _SCOPE | {"button"}


def without_depth(html: str) -> tuple[str, int]:
    """The page with at most so many elements in each other; its text stays, and deeper blocks are lines.

    Of elements with more attributes than any document has, the first ones stay.

    Returns:
        The page, and how many elements were taken out of it.
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
    """Tags: offsets of the `<` and of what follows the name, whether it is an end tag, the name, and all of it.

    And, without a name, the whole of a declaration or an instruction that is as long as none is, or that nothing ends.
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
    """How much of a tag holds as many attributes as are kept."""
    for _ in range(MAX_ATTRIBUTES):
        found = _ATTRIBUTE.match(tag, place)
        if found is None:
            return len(tag)
        place = found.end()
    return place if _ATTRIBUTE.match(tag, place) else len(tag)


class _Nesting:
    """The open elements, as a parser keeps them; it never takes them for fewer than they are."""

    def __init__(self) -> None:
        self.taken_out = 0
        self._open: list[str] = []
        self._count: Counter[str] = Counter()
        self._formatting: list[tuple[str, str]] = []
        """name and start tag of those that no end tag has closed"""
        self._dropped: Counter[str] = Counter()

    @property
    def in_foreign(self) -> bool:
        return bool(self._count["svg"] or self._count["math"])

    def open(self, name: str, tag: str) -> str | None:
        """Take a start tag; returns what to replace it with, if the element is to be taken out."""
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
        """Take an end tag; returns what to replace it with, if its start tag was taken out."""
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
        # A parser keeps three like ones at most.
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
        """Close a formatting element: blocks that were opened in it stay open, and formatting is opened again."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place] == name:
                above = self._open[place + 1 :]
                is_left = any(one in _SPECIAL for one in above)
                self._cut(place, above if is_left else self._opened_again(place + 1))
                return
            if self._open[place] in _SCOPE:
                return

    def _opened_again(self, place: int) -> list[str]:
        """The formatting elements from a place on that no end tag has closed."""
        listed = Counter(name for name, _ in self._formatting)
        again = []
        for name in self._open[place:]:
            if listed[name]:
                listed[name] -= 1
                again.append(name)
        return again

    def _cut(self, place: int, kept: list[str]) -> None:
        """Have the elements from a place on give way to those that are kept of them."""
        self._count.subtract(self._open[place:])
        self._count.update(kept)
        self._open[place:] = kept
