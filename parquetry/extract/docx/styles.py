"""Detects headings and list items of a Word document, and generates the numbers that Word prints before headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_BASED_ON = 20
"""length of a chain of styles above which it is circular"""
TITLE_LEVEL = 1
MAX_LABEL_CHARACTERS = 100
"""characters of the pattern of a number before a heading"""
MAX_LETTERED = 26 * 30
"""number above which digits are used instead of letters; the limit of Word itself"""
MAX_ROMAN = 32_767
"""number above which digits are used instead of Roman numerals; the limit of Word itself"""

_HEADING_NAME = re.compile(r"heading (\d)", re.IGNORECASE)
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Style:
    name: str
    based_on: str | None
    outline: int | None
    """outline level: 0 for the outermost, 9 for body text, None if inherited"""
    number: tuple[str | None, int | None]
    """list id and 0-based depth in the list; None for what the style does not define"""


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    format: str
    text: str
    """pattern such as `%1.%2`: the numbers of this level and the outer ones"""


class Styles:
    """The paragraph styles of a document.

    Args:
        root: root of `styles.xml`; None if the part is missing.
    """

    def __init__(self, root: Any) -> None:
        self._styles: dict[str, _Style] = {}
        self._default: str | None = None
        for element in root.iter("{*}style") if root is not None else ():
            if attribute(element, "type") not in (None, "paragraph"):
                continue
            style_id = attribute(element, "styleId") or ""
            self._styles[style_id] = _Style(
                name=value_of(element, "name") or "",
                based_on=value_of(element, "basedOn"),
                outline=_integer(value_of(element, "pPr/{*}outlineLvl")),
                number=_number_properties(element),
            )
            if attribute(element, "default") in ("1", "true", "on"):
                self._default = style_id

    def heading_level(self, paragraph: Any) -> int | None:
        """Return the level of a heading, 1 for the outermost (titles included); None for body text."""
        own = _integer(value_of(paragraph, "pPr/{*}outlineLvl"))
        if own is not None:
            return own + 1 if own < 9 else None
        for style in self._chain(paragraph):
            if style.name.lower() == "title":
                return TITLE_LEVEL
            if named := _HEADING_NAME.fullmatch(style.name):
                return int(named[1])
            if style.outline is not None:
                return style.outline + 1 if style.outline < 9 else None
        return None

    def is_title(self, paragraph: Any) -> bool:
        return any(style.name.lower() == "title" for style in self._chain(paragraph))

    def is_contents(self, paragraph: Any) -> bool:
        """Return True for a line of a table of contents, figures or authorities, or the heading of one."""
        return any(re.fullmatch(r"toc( \d|heading)|table of (figures|authorities)", s.name.lower())
                   for s in self._chain(paragraph))  # fmt: skip

    def number_of(self, paragraph: Any) -> tuple[str, int] | None:
        """Return the list id and 0-based depth of a numbered or bulleted paragraph."""
        number, depth = _number_properties(paragraph)
        for style in self._chain(paragraph):
            number = style.number[0] if number is None else number
            depth = style.number[1] if depth is None else depth
        return None if number in (None, "0") else (str(number), depth or 0)

    def _chain(self, paragraph: Any) -> Iterator[_Style]:
        style_id = value_of(paragraph, "pPr/{*}pStyle") or self._default
        for _ in range(MAX_BASED_ON):
            style = self._styles.get(style_id or "")
            if style is None:
                return
            yield style
            style_id = style.based_on


class Numbering:
    """Counts numbered paragraphs as Word does, in the order of the document.

    Args:
        root: root of `numbering.xml`; None if the part is missing.
    """

    def __init__(self, root: Any) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        self._abstract: dict[str, str] = {}
        self._counts: dict[str, dict[int, int]] = {}
        if root is None:
            return
        abstract = {attribute(found, "abstractNumId"): _levels(found) for found in root.iter("{*}abstractNum")}
        for number in root.iter("{*}num"):
            number_id = attribute(number, "numId") or ""
            of = value_of(number, "abstractNumId")
            overridden = {
                int(attribute(change, "ilvl") or 0): level
                for change in number.iter("{*}lvlOverride")
                for level in _levels(change).values()
            }
            self._levels[number_id] = abstract.get(of, {}) | overridden
            # Lists of one abstract definition continue each other's count, unless they override a level.
            self._abstract[number_id] = number_id if overridden or of is None else f"abstract {of}"

    def label(self, number: str, depth: int) -> str:
        """Return the number of the next paragraph of a list, such as `2.1` or `(c)`; empty for bullets."""
        levels = self._levels.get(number, {})
        if depth not in levels:
            return ""
        counts = self._counts.setdefault(self._abstract[number], {})
        counts[depth] = counts[depth] + 1 if depth in counts else levels[depth].start
        for deeper in [at for at in counts if at > depth]:
            del counts[deeper]
        if levels[depth].format in ("bullet", "none"):
            return ""

        def spelled(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            level = levels.get(at, levels[depth])
            return _spell(counts.get(at, level.start), level.format)

        return re.sub(r"%(\d)", spelled, levels[depth].text).strip()


def attribute(element: Any, name: str) -> str | None:
    """Return an attribute by its local name, for any variant of the format's namespace."""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def value_of(element: Any, path: str) -> str | None:
    """Return `w:val` of the first element at a path of local names below `element`."""
    found = element.find(f"{{*}}{path}")
    return None if found is None else attribute(found, "val")


def _levels(element: Any) -> dict[int, _Level]:
    return {
        int(attribute(level, "ilvl") or 0): _Level(
            start=_integer(value_of(level, "start")) or 0,
            format=value_of(level, "numFmt") or "decimal",
            text=(value_of(level, "lvlText") or "")[:MAX_LABEL_CHARACTERS],
        )
        for level in element.iter("{*}lvl")
    }


def _number_properties(element: Any) -> tuple[str | None, int | None]:
    return value_of(element, "pPr/{*}numPr/{*}numId"), _integer(value_of(element, "pPr/{*}numPr/{*}ilvl"))


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,6}", text) else None


def _spell(number: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter") and 0 < number <= MAX_LETTERED:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if kind == "upperLetter" else letter
    if kind in ("lowerRoman", "upperRoman") and number <= MAX_ROMAN:
        roman = ""
        for value, digits in _ROMAN:
            roman += digits * (number // value)
            number %= value
        return roman.upper() if kind == "upperRoman" else roman
    return f"{number:02}" if kind == "decimalZero" else str(number)
