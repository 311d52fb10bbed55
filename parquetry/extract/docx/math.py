"""Word formulas as one line of text, in the notation that people type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_GROUPED = frozenset("+-−±*/=<>≤≥ ,;∑∫")
"""characters that require brackets around the part of a formula that contains them"""


def linear_formula(element: Any) -> str:
    """Convert a formula to text: `x = (-b ± √(b^2 - 4ac))/(2a)`.

    Args:
        element: an lxml element in the Office Math namespace; nested formulas are allowed.
    """
    return " ".join(_spoken(element).split())


def _spoken(element: Any) -> str:
    name = element.tag.rpartition("}")[2]
    if name == "t":
        return element.text or ""
    if name in _NOTATIONS:
        return _NOTATIONS[name](element)
    if name.endswith("Pr"):
        return ""
    return "".join(_spoken(child) for child in element)


def _part(element: Any, name: str) -> str:
    found = element.find(f"{{*}}{name}")
    return "" if found is None else "".join(_spoken(child) for child in found).strip()


def _grouped(text: str) -> str:
    return f"({text})" if any(sign in _GROUPED for sign in text) and not _bracketed(text) else text


def _bracketed(text: str) -> bool:
    return text.startswith("(") and text.endswith(")") and text.count("(") == 1


def _property(element: Any, name: str, default: str) -> str:
    found = element.find(f"./*/{{*}}{name}")
    if found is None:
        return default
    return next((value for key, value in found.attrib.items() if key.rpartition("}")[2] == "val"), "")


def _fraction(element: Any) -> str:
    return f"{_grouped(_part(element, 'num'))}/{_grouped(_part(element, 'den'))}"


def _scripted(element: Any) -> str:
    low, high = _part(element, "sub"), _part(element, "sup")
    return _grouped(_part(element, "e")) + (f"_{_grouped(low)}" if low else "") + (f"^{_grouped(high)}" if high else "")


def _root(element: Any) -> str:
    degree = _part(element, "deg")
    return f"{_grouped(degree)}√({_part(element, 'e')})" if degree else f"√({_part(element, 'e')})"


def _sum(element: Any) -> str:
    low, high = _part(element, "sub"), _part(element, "sup")
    sign = _property(element, "chr", "∫")
    return sign + (f"_({low})" if low else "") + (f"^({high})" if high else "") + f" {_part(element, 'e')}"


def _delimited(element: Any) -> str:
    inside = _property(element, "sepChr", "|").join(
        "".join(_spoken(child) for child in part).strip() for part in element.findall("{*}e")
    )
    return _property(element, "begChr", "(") + inside + _property(element, "endChr", ")")


def _function(element: Any) -> str:
    return f"{_part(element, 'fName')} {_part(element, 'e')}"


def _limit(element: Any) -> str:
    return f"{_part(element, 'e')}_({_part(element, 'lim')})"


def _matrix(element: Any) -> str:
    rows = (
        ", ".join("".join(_spoken(child) for child in cell).strip() for cell in row.findall("{*}e"))
        for row in element.findall("{*}mr")
    )
    return f"[{'; '.join(rows)}]"


def _equations(element: Any) -> str:
    return "; ".join("".join(_spoken(child) for child in line).strip() for line in element.findall("{*}e"))


_NOTATIONS: dict[str, Callable[[Any], str]] = {
    "f": _fraction,
    "sSup": _scripted,
    "sSub": _scripted,
    "sSubSup": _scripted,
    "sPre": _scripted,
    "rad": _root,
    "nary": _sum,
    "d": _delimited,
    "func": _function,
    "limLow": _limit,
    "limUpp": _limit,
    "m": _matrix,
    "eqArr": _equations,
}
