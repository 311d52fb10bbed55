"""Ways to turn a piece of text into a file that exhausts its reader."""

from __future__ import annotations

from collections.abc import Callable

Hostile = Callable[[int], tuple[bytes, str]]
"""size in bytes -> content, file name"""


def repeated(name: str, piece: str, before: str = "", after: str = "") -> Hostile:
    """Repeat a piece up to the size, between a beginning and an end."""

    def build(size: int) -> tuple[bytes, str]:
        count = max(1, (size - len(before) - len(after)) // len(piece.encode()))
        return (before + piece * count + after).encode(), name

    return build


def nested(name: str, opening: str, closing: str, within: str = "x", before: str = "", after: str = "") -> Hostile:
    """Nest a piece in itself."""

    def build(size: int) -> tuple[bytes, str]:
        count = max(1, (size - len(before) - len(after)) // (len(opening) + len(closing)))
        return (before + opening * count + within + closing * count + after).encode(), name

    return build


def numbered(name: str, piece: str, before: str = "", after: str = "", join: str = "") -> Hostile:
    """Repeat a piece, replacing every `@` with its number."""

    def build(size: int) -> tuple[bytes, str]:
        count = max(1, (size - len(before) - len(after)) // (len(piece) + len(join) + 4))
        return (before + join.join(piece.replace("@", str(n)) for n in range(count)) + after).encode(), name

    return build


def halves(name: str, first: str, second: str, before: str = "", between: str = "", after: str = "") -> Hostile:
    """Fill half of the size with one piece and half with another, for costs that are the product of the two."""

    def build(size: int) -> tuple[bytes, str]:
        half = max(1, size // 2)
        return (before + first * (half // len(first)) + between + second * (half // len(second)) + after).encode(), name

    return build
