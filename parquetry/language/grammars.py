"""Parsing of source code, with a bound on its effort."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser, Point, Tree

GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "rust": ("tree_sitter_rust", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "bash": ("tree_sitter_bash", "language"),
}
"""language -> package of its grammar, and the function that returns it"""

_BYTES_AT_ONCE = 4096
_FREE_BYTES = 1_000_000
_READS = 20
"""maximum times that the parser reads each byte. In 2,000 files, lookahead made it read at most 3.4 times the text;
constructs that begin again and again and never end would make it read thousands of times."""
_BYTES_PER_REPORT = 32
"""minimum bytes per progress report, made every hundred steps. Of 775 files, minified ones among them, none has fewer
than 51 bytes per report; a text that is ambiguous or broken throughout has 10, and takes up to 100 KB of memory each.
"""
_FREE_REPORTS = 200
MAX_CHARACTERS = 4 * 1024 * 1024
"""maximum characters of source code. Longer code is generated: its definitions carry no information, and it is cut at
lines."""


@lru_cache(maxsize=16)
def grammar(language: str) -> object:
    """Return the tree-sitter language for a key of `GRAMMARS`."""
    module, function = GRAMMARS[language]
    made: Callable[[], object] = getattr(import_module(module), function)
    return made()


def parsed(source: bytes, language: str) -> Tree | None:
    """Parse source code; return None if the effort would exceed its bound.

    Nodes have offsets only: their text is in `source`.
    """
    parser = _parser(language)
    reports = 0
    left = _FREE_BYTES + _READS * len(source)

    def read(start: int, _: Point) -> bytes:
        nonlocal left
        left -= _BYTES_AT_ONCE
        # An early end of the text also ends the lookahead.
        return source[start : start + _BYTES_AT_ONCE] if left > 0 else b""

    def goes_too_far(place: int, _: bool) -> bool:
        nonlocal reports
        reports += 1
        return left <= 0 or reports > _FREE_REPORTS + place // _BYTES_PER_REPORT

    try:
        tree = parser.parse(read, progress_callback=goes_too_far)
    except ValueError:
        parser.reset()
        return None
    return tree if left > 0 else None


@lru_cache(maxsize=16)
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(grammar(language)))
