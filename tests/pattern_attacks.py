"""Every regular expression of the product, its uses, and texts on which such an expression may take very long."""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from re import _constants as codes
from re import _parser as parser
from typing import Any

from parquetry.lazy_patterns import LazyPattern
from tests.processor_time import seconds_of
from tests.product_modules import product_modules

_USES = {
    **{name: name for name in ("match", "fullmatch", "search")},
    **dict.fromkeys(("sub", "subn", "finditer", "findall", "split"), "finditer"),
}
_USE = re.compile(rf"(?<![\w.])(\w+)(?:\[.*?\])?\.({'|'.join(_USES)})\b")
_OF_RE = re.compile(rf"\bre\.(?:{'|'.join(_USES)}|compile)\b")
_PROBES = "aA1 -_.<>\"'\n\t;:=#&|*"
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_MANY = 50
"""number of matches above which a repeat counts as unbounded"""

Text = Callable[[int], str]
"""function that makes a text of a given size"""


def patterns() -> dict[str, tuple[re.Pattern[Any], tuple[str, ...]]]:
    """Return all patterns, and the methods by which each is used, or all methods if the uses cannot be determined.

    Returns:
        `module.NAME` for constants of a module, `module 'pattern'` for patterns written where they are used.
    """
    uses = _uses()
    found = dict(_written_in_place())
    for name, file in product_modules():
        if re.search(r"re\.compile|lazy_pattern", file.read_text("utf-8")):
            for place, pattern in _held(vars(importlib.import_module(name))):
                known = uses.get((name, place.partition("[")[0])) or set(_USES.values())
                found[f"{name}.{place}"] = (pattern, tuple(sorted(known)))
    return found


def _written_in_place() -> Iterator[tuple[str, tuple[re.Pattern[Any], tuple[str, ...]]]]:
    """Find calls like `re.search("...", text)` within functions; a value inserted into a pattern counts as a digit."""
    uses = _uses()
    for name, file in product_modules():
        source = file.read_text("utf-8")
        if not _OF_RE.search(source):
            continue
        for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)):
            nodes = list(ast.walk(function))
            kept = {
                node.value: node.targets[0].id
                for node in nodes
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
            for node in nodes:
                if isinstance(node, ast.Call) and (source := _of_re(node)) is not None:
                    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                    known = {_USES[method]} if method in _USES else uses.get((name, kept.get(node, "")))
                    pattern = re.compile(source, _flags(node))
                    yield f"{name} {source!r}", (pattern, tuple(sorted(known or set(_USES.values()))))


def _of_re(call: ast.Call) -> str | bytes | None:
    """Return the pattern passed to a function of `re`, if it is a literal."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"):
        return None
    if function.attr not in (*_USES, "compile"):
        return None
    match call.args[0]:
        case ast.Constant(value=str() | bytes() as source):
            return source
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "3" for part in parts)
    return None


def _flags(call: ast.Call) -> int:
    names = [node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute) and node.attr.isupper()]
    return functools.reduce(operator.or_, (getattr(re, name) for name in names if hasattr(re, name)), 0)


def _held(values: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in values.items():
        if not name.startswith("__"):
            yield from _within(name, value, 3)


def _within(place: str, value: Any, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, LazyPattern):
        yield place, value.compiled
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _within(f"{place}.{each.name}", getattr(value, each.name), depth - 1)
    elif depth and isinstance(value, dict):
        for number, each in enumerate((*value.keys(), *value.values())):
            yield from _within(f"{place}[{number}]", each, depth - 1)
    elif depth and isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _within(f"{place}[{number}]", each, depth - 1)


@functools.cache
def _uses() -> dict[tuple[str, str], set[str]]:
    """Return (module, name) -> methods that are called on it there."""
    found = defaultdict(set)
    for name, file in product_modules():
        # Every test process looks at all modules, and trees of them take seconds.
        for held, method in _USE.findall(file.read_text("utf-8")):
            found[name, held].add(_USES[method])
    return found


# --- texts


def attacks(pattern: re.Pattern[Any]) -> dict[str, Text]:
    """Return texts that repeat a match of each repeat of a pattern, after a match of its prefix, and do not match."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(source, pattern.flags & (re.I | re.S | re.M | re.X))
    made: dict[str, Text] = {}

    def add(text: Text) -> None:
        if text(2):
            made.setdefault(text(2), text)

    for before, repeated in set(_repeats(tree, "")):
        for end in ("", "\x00", "\n!"):
            add(lambda n, b=before, r=repeated, e=end: b + r * n + e)  # type: ignore[misc]
        add(lambda n, b=before, r=repeated: (b + r) * n)  # type: ignore[misc]
        add(lambda n, b=before, r=repeated: (b + r + " ") * n)  # type: ignore[misc]
        add(lambda n, b=before: b * n)  # type: ignore[misc]
    whole = _sample(tree)
    add(lambda n: whole * n)
    add(lambda n: whole[:-1] * n)
    return made


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    for code, value in tree:
        if code in _REPEATS:
            if value[1] >= _MANY:
                yield from ((before, each) for each in itertools.islice(filter(None, _choices(value[2])), 8))
            yield from _repeats(value[2], before)
        elif code is codes.SUBPATTERN:
            yield from _repeats(value[3], before)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before)
        elif code is codes.ATOMIC_GROUP:
            yield from _repeats(value, before)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _repeats(value[1], before)
        before += _one(code, value)


def _choices(tree: Any) -> Iterator[str]:
    yield _sample(tree)
    for code, value in tree:
        if code is codes.BRANCH:
            yield from map(_sample, value[1])
        elif code is codes.SUBPATTERN:
            yield from _choices(value[3])
        elif code is codes.IN:
            yield from (_of_set([each]) for each in value if each[0] is not codes.NEGATE)


def _sample(tree: Any) -> str:
    return "".join(_one(code, value) for code, value in tree)


def _one(code: Any, value: Any) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return _of_set(value)
    if code is codes.BRANCH:
        return _sample(value[1][0])
    if code is codes.SUBPATTERN:
        return _sample(value[3])
    if code in _REPEATS:
        return _sample(value[2]) * max(value[0], min(1, value[1]))
    return _sample(value) if code is codes.ATOMIC_GROUP else ""


def _of_set(items: Any) -> str:
    negated = any(code is codes.NEGATE for code, _ in items)
    for letter in (
        *_PROBES,
        *(chr(value if code is codes.LITERAL else value[0]) for code, value in items if _has(code)),
    ):
        if any(_holds(code, value, letter) for code, value in items) != negated:
            return letter
    return "\u4e00"


def _has(code: Any) -> bool:
    return code in (codes.LITERAL, codes.RANGE)


def _holds(code: Any, value: Any, letter: str) -> bool:
    if code is codes.LITERAL:
        return ord(letter) == value
    if code is codes.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    if code is codes.CATEGORY:
        name = str(value)
        of = letter.isdigit() if "DIGIT" in name else letter.isspace() if "SPACE" in name else letter.isalnum()
        return of != ("NOT" in name)
    return False


# --- time


def seconds(pattern: re.Pattern[Any], text: str, methods: tuple[str, ...], most: float) -> float:
    """Return the seconds of processor time that a use of a pattern takes; infinite if more than `most`."""
    given = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")

    def use() -> None:
        for method in methods:
            found = getattr(pattern, method)(given)
            if method == "finditer":
                for _ in found:
                    pass

    return seconds_of(use, most)
