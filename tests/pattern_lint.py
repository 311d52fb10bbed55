"""Static checks of the form of a regular expression for slow matching, before any text is tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _compiler as compiler
from re import _constants as codes
from re import _parser as parser
from typing import Any

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ONE = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
_LOOKS = (codes.ASSERT, codes.ASSERT_NOT)
_MANY = 50
"""number of matches above which a repeat counts as unbounded"""
_LETTERS = "".join(map(chr, range(0x180))) + "\u0600\u0964\u2019\u2028\u3000\u3002\u3042\u4e00\uac00\uff01\U0001f600"
"""letters tried, with the pattern's own, to find those that two parts of a pattern share"""


def faults(pattern: re.Pattern[Any]) -> list[str]:
    """Return the faults of a pattern.

    Returns:
        One line for each fault, which begins with
        `nested`: a repeat in a repeat, both of which can match the next character, so that a text without a match
        is divided between them in every possible way;
        `everything`: an unbounded repeat of any character, line breaks included, so that each start reads to the end of
        the text.
    """
    return list(_Lint(pattern).faults())


class _Lint:
    """Walks the parsed form of one pattern."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        self._tree = parser.parse(source, pattern.flags & ~re.UNICODE)
        self._flags = self._tree.state.flags
        self._letters = _LETTERS + source
        self._all = frozenset(self._letters)

    def faults(self) -> Iterator[str]:
        return self._within(self._tree, self._flags, None)

    def _within(self, sequence: Any, flags: int, around: frozenset[str] | None) -> Iterator[str]:
        """Return the faults of a sequence.

        Args:
            sequence: parsed sequence.
            flags: flags in force.
            around: characters that may follow it while the enclosing repeat continues; None without such a repeat, or
                if the repeat does not backtrack.
        """
        nodes = list(sequence)
        for place, (code, value) in enumerate(nodes):
            following, passable = self._first(nodes[place + 1 :], flags)
            after = following | around if passable and around is not None else following
            if code in _REPEATS:
                yield from self._of_repeat(code, value, flags, after, inside=around is not None)
            elif code is codes.SUBPATTERN:
                kept = None if around is None else after
                yield from self._within(value[3], (flags | value[1]) & ~value[2], kept)
            elif code is codes.BRANCH:
                for branch in value[1]:
                    yield from self._within(branch, flags, None if around is None else after)
            elif code is codes.ATOMIC_GROUP or code in _LOOKS:
                yield from self._within(value[1] if code in _LOOKS else value, flags, None)

    def _of_repeat(self, code: Any, value: Any, flags: int, after: frozenset[str], *, inside: bool) -> Iterator[str]:
        least, most, body = value
        first, _ = self._first(body, flags)
        if most >= _MANY and first == self._all and _is_one(body):
            yield "everything"
        gives_back = code is not codes.POSSESSIVE_REPEAT
        if inside and gives_back and most > max(least, 1) and (shared := first & after):
            yield f"nested: {min(shared)!r} belongs to a repeat and to what comes after it in the repeat around it"
        # Within a repeat, the rest of its body comes next, then its beginning again.
        around = (first | after if inside else first) if gives_back and most > 1 else None
        yield from self._within(body, flags, around)

    def _first(self, sequence: Iterable[Any], flags: int) -> tuple[frozenset[str], bool]:
        """Return the characters with which a sequence may begin, and True if it may be empty."""
        found: frozenset[str] = frozenset()
        for code, value in sequence:
            letters, passable = self._first_of(code, value, flags)
            found |= letters
            if not passable:
                return found, False
        return found, True

    def _first_of(self, code: Any, value: Any, flags: int) -> tuple[frozenset[str], bool]:
        if code in _ONE:
            one = parser.SubPattern(self._tree.state, [(code, value)])
            return frozenset(found[0] for found in compiler.compile(one, flags).finditer(self._letters)), False
        if code in _REPEATS:
            letters, passable = self._first(value[2], flags)
            return letters, passable or value[0] == 0
        if code is codes.SUBPATTERN:
            return self._first(value[3], (flags | value[1]) & ~value[2])
        if code is codes.ATOMIC_GROUP:
            return self._first(value, flags)
        if code is codes.BRANCH:
            each = [self._first(branch, flags) for branch in value[1]]
            return frozenset().union(*(letters for letters, _ in each)), any(passable for _, passable in each)
        if code is codes.AT or code in _LOOKS:
            return frozenset(), True
        # A back-reference, which may match anything.
        return self._all, True


def _is_one(sequence: Any) -> bool:
    """Return True if a sequence is a single character or a choice of single characters."""
    if len(sequence) != 1:
        return False
    code, value = sequence[0]
    if code is codes.SUBPATTERN:
        return _is_one(value[3])
    return code in _ONE or (code is codes.BRANCH and all(map(_is_one, value[1])))
