"""Number formats of spreadsheets: shows a number as its cell does.

Source: ECMA-376 part 1, 18.8.30 and 18.8.31.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache

from parquetry.extract.sheets.date_formats import DateSection

LONGEST_CODE = 255
"""characters of a format; Excel allows no more"""
LARGEST = 1e15
"""numbers from here on have more digits than a spreadsheet stores"""
BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;-$#,##0", 6: "$#,##0;-$#,##0", 7: "$#,##0.00;-$#,##0.00",
    8: "$#,##0.00;-$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss",
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: "#,##0;(#,##0);-", 42: "$#,##0;($#,##0);-", 43: "#,##0.00;(#,##0.00);-", 44: "$#,##0.00;($#,##0.00);-",
    45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
}  # fmt: skip
"""number of a format that files do not spell out -> the format. 14 and 22, the dates in the order of the reader's own
country, are not here: such dates are shown as `2025-03-14`."""

Value = float | int | datetime | date | time | timedelta

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[(?P<bracket>[^\]]{0,255})\]|(?P<general>General)|'
    r"(?P<ampm>AM/PM|A/P|上午/下午)|(?P<exponent>E[+-])|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?|e+|b+|g+)|"
    r"(?P<digit>[0#?])|(?P<sign>[.,%/@])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d{1,15}(?:\.\d{1,15})?)")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne,
}  # fmt: skip
_NOT_ZERO = re.compile(r"[1-9]")
_ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
_LOCALE = re.compile(r"\$(?P<symbol>[^-]*)(?:-(?P<locale>[0-9a-fA-F]{1,8}))?")


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of a section."""

    kind: str
    """`literal`, `digit`, `sign`, `exponent`, `date`, `elapsed`, `ampm` or `general`"""
    text: str


@dataclass(frozen=True, slots=True)
class _Section:
    """The format of some of the numbers."""

    tokens: tuple[_Token, ...]
    condition: tuple[str, float] | None
    locale: int
    """Windows' number of a language; 0 if none is given"""

    @property
    def is_date(self) -> bool:
        return any(token.kind in ("date", "elapsed") for token in self.tokens)

    @property
    def is_general(self) -> bool:
        return any(token.kind == "general" for token in self.tokens)

    def holds(self, value: float) -> bool:
        return self.condition is None or _OPERATORS[self.condition[0]](value, self.condition[1])


class NumberFormat:
    """The parsed format of a cell.

    Args:
        code: format as the file stores it, such as `#,##0.00;[Red]-#,##0.00`.
    """

    def __init__(self, code: str) -> None:
        self._sections = _sections(code)

    @property
    def changes(self) -> bool:
        """True if numbers look different from how they are stored."""
        plain = {_Token("sign", "@"), _Token("literal", "")}
        return any(token.kind != "general" and token not in plain for token in self._sections[0].tokens)

    def show(self, value: Value) -> str | None:
        """Return a value as its cell shows it; None if the format does not say.

        Args:
            value: number, or date or time that a reader made of it.
        """
        if isinstance(value, bool):
            return None
        if not isinstance(value, float | int):
            section = self._sections[0]
            return DateSection(section.tokens, section.locale).show(value) if section.is_date else None
        if not abs(value) < LARGEST:
            return None
        section, size = self._section(value)
        if section.is_date:
            return None
        if section.is_general:
            return "".join(f"{size:.15g}" if token.kind == "general" else token.text for token in section.tokens)
        return _number(section.tokens, size)

    def _section(self, value: float) -> tuple[_Section, float]:
        """Return the section of a number, and the number without a sign that the section shows by itself."""
        sections = list(self._sections[:3])
        if any(section.condition for section in sections):
            found = next((section for section in sections if section.holds(value)), sections[-1])
            negatives = found.condition is not None and found.condition[0] in ("<", "<=") and found.condition[1] <= 0
            return found, -value if negatives and value < 0 else value
        if value < 0 and len(sections) > 1:
            return sections[1], -value
        if value == 0 and len(sections) > 2:
            return sections[2], value
        return sections[0], value


@lru_cache(maxsize=512)
def number_format(code: str) -> NumberFormat | None:
    """Return the format of a code; None if it leaves numbers as they are, or is longer than any format."""
    if len(code) > LONGEST_CODE:
        return None
    parsed = NumberFormat(code)
    return parsed if parsed.changes else None


def _sections(code: str) -> list[_Section]:
    sections: list[_Section] = []
    tokens: list[_Token] = []
    condition: tuple[str, float] | None = None
    locale = 0
    for match in _TOKEN.finditer(code):
        kind = match.lastgroup
        text = match[kind] if kind else ""
        if kind == "other" and text == ";":
            sections.append(_Section(tuple(tokens), condition, locale))
            tokens, condition = [], None
        elif kind == "bracket":
            if (found := _CONDITION.fullmatch(text.strip())) is not None:
                condition = (found[1], float(found[2]))
            elif (marked := _LOCALE.fullmatch(text)) is not None:
                locale = int(marked["locale"] or "0", 16) & 0xFFFF
                tokens.append(_Token("literal", marked["symbol"]))
            elif _ELAPSED.fullmatch(text):
                tokens.append(_Token("elapsed", text.lower()))
        elif kind is None:
            # The width of a character, or a character that fills the cell.
            tokens.append(_Token("literal", " " if match[0].startswith("_") else ""))
        else:
            literal = kind in ("quoted", "escaped", "other")
            tokens.append(_Token("literal" if literal else kind, text))
    sections.append(_Section(tuple(tokens), condition, locale))
    return sections


def _number(tokens: tuple[_Token, ...], value: float) -> str:
    """Show a number by a section of digits and signs; without a minus if only zeros are left of it."""
    shown = _signed(tokens, value)
    return shown if not shown.startswith("-") or _NOT_ZERO.search(shown) else shown[1:]


def _signed(tokens: tuple[_Token, ...], value: float) -> str:
    signs = [token.text for token in tokens if token.kind == "sign"]
    exact = Decimal(repr(float(value)))
    for _ in range(signs.count("%")):
        exact *= 100
    minus = "-" if exact < 0 else ""
    exact = abs(exact)
    if not any(token.kind == "digit" for token in tokens):
        plain = "".join(token.text for token in tokens if token.kind == "literal" or token.text == "%")
        return (minus + plain.strip()) if plain.strip() else ""
    if "/" in signs and (shown := _fraction(tokens, exact)) is not None:
        return minus + shown
    if any(token.kind == "exponent" for token in tokens):
        return minus + _scientific(tokens, exact)
    return _placed(tokens, exact, minus)


def _parts(tokens: tuple[_Token, ...]) -> tuple[int, int, int]:
    """Return the places of the first and last digit, and that of the decimal point (one past the last without one)."""
    digits = [place for place, token in enumerate(tokens) if token.kind == "digit"]
    point = next((place for place, token in enumerate(tokens) if token == _Token("sign", ".")), digits[-1] + 1)
    return digits[0], digits[-1], point


def _placed(tokens: tuple[_Token, ...], exact: Decimal, minus: str) -> str:
    """Fill the digits of a number into the places of a section."""
    first, last, point = _parts(tokens)
    after = [token.text for token in tokens[point:] if token.kind == "digit"]
    commas = {place for place, token in enumerate(tokens) if token == _Token("sign", ",")}
    for place in sorted(commas):
        # Behind the last digit before the point, each comma divides by a thousand.
        if not any(token.kind == "digit" for token in tokens[place:point]) and place > first:
            exact /= 1000
    grouped = any(first < place < min(last, point) for place in commas if _between_digits(tokens, place, point))
    digits = str(exact.quantize(Decimal(1).scaleb(-len(after)), rounding=ROUND_HALF_UP))
    whole, _, decimals = digits.partition(".")
    decimals = _trimmed(decimals, after)
    before = [place for place in range(first, min(point, last + 1)) if tokens[place].kind == "digit"]
    filled = _filled(whole.lstrip("0"), [tokens[place].text for place in before], grouped=grouped)
    pieces: list[str] = []
    left = iter(decimals)
    for place, token in enumerate(tokens):
        if place == point and tokens[place : place + 1] == (_Token("sign", "."),):
            pieces.append("." if decimals or not after else "")
        elif place in before:
            pieces.append(filled[before.index(place)])
        elif token.kind == "digit":
            pieces.append(next(left, ""))
        elif token.kind == "literal" or token.text == "%":
            pieces.append(token.text)
    shown = "".join(pieces)
    if not before:
        shown = shown if whole in ("", "0") else whole + shown
    return (minus + shown).strip()


def _between_digits(tokens: tuple[_Token, ...], place: int, point: int) -> bool:
    return any(token.kind == "digit" for token in tokens[:place]) and any(
        token.kind == "digit" for token in tokens[place:point]
    )


def _trimmed(decimals: str, places: list[str]) -> str:
    """Drop zeros at the end that the format does not ask for."""
    end = len(decimals)
    while end and places[end - 1] == "#" and decimals[end - 1] == "0":
        end -= 1
    return decimals[:end]


def _filled(digits: str, places: list[str], *, grouped: bool) -> list[str]:
    """Spread the digits before the point over their places, from the right; the first place takes all that are left."""
    filled: list[str] = []
    count = 0
    for number, place in enumerate(reversed(places), start=1):
        taken = len(digits) if number == len(places) else 1
        piece, digits = digits[len(digits) - taken :], digits[: len(digits) - taken]
        if not piece:
            piece = "0" if place == "0" else ""
        text = ""
        for digit in reversed(piece):
            text = digit + ("," if grouped and count and count % 3 == 0 else "") + text
            count += 1
        filled.append(text)
    return filled[::-1]


def _scientific(tokens: tuple[_Token, ...], exact: Decimal) -> str:
    at = next(place for place, token in enumerate(tokens) if token.kind == "exponent")
    mantissa, power = tokens[:at], tokens[at + 1 :]
    if not any(token.kind == "digit" for token in mantissa):
        return f"{exact:.2E}"
    _, _, point = _parts(mantissa)
    step = max(1, sum(token.kind == "digit" for token in mantissa[:point]))
    exponent = exact.adjusted() if exact else 0
    exponent -= exponent % step
    places = sum(token.kind == "digit" for token in mantissa[point:])
    scaled = exact.scaleb(-exponent).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    if scaled >= Decimal(10) ** step:
        scaled, exponent = scaled.scaleb(-step), exponent + step
    least = sum(token == _Token("digit", "0") for token in power)
    rest = "".join(token.text for token in power if token.kind == "literal")
    sign = "-" if exponent < 0 else "+" if tokens[at].text.endswith("+") else ""
    return _placed(mantissa, scaled, "") + f"E{sign}{abs(exponent):0{least}d}" + rest


def _fraction(tokens: tuple[_Token, ...], exact: Decimal) -> str | None:
    """Show a number as `1 3/4`; None if the section is no fraction."""
    slash = next(place for place, token in enumerate(tokens) if token == _Token("sign", "/"))
    below = "".join(token.text for token in tokens[slash + 1 :] if token.kind in ("digit", "literal")).strip()
    digits = sum(token.kind == "digit" for token in tokens[slash + 1 :])
    if not below:
        return None
    if below.isdigit() and int(below) > 0:
        denominator = int(below)
        numerator = int((exact * denominator).to_integral_value(ROUND_HALF_UP))
    else:
        nearest = Fraction(exact).limit_denominator(10 ** min(digits, 4) - 1)
        numerator, denominator = nearest.numerator, nearest.denominator
    whole = 0
    if " " in "".join(token.text for token in tokens[:slash]):
        whole, numerator = divmod(numerator, denominator)
    if not numerator:
        return str(whole)
    return (f"{whole} " if whole else "") + f"{numerator}/{denominator}"
