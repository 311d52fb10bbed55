"""Counts and sizes for people."""

from __future__ import annotations

_VOWELS = "aeiou"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Write a number with its noun: `1 entry`, `0 entries`, `2 sessions`.

    Args:
        number: count of things.
        thing: singular, of one word or ending in the word that takes the plural.
        things: plural, if it is not formed by `s` or `ies`, or if a verb goes with it (`file was`, `files were`).
    """
    if number == 1:
        return f"1 {thing}"
    if things is not None:
        return f"{number} {things}"
    if thing.endswith("y") and thing[-2:-1] not in _VOWELS:
        return f"{number} {thing[:-1]}ies"
    return f"{number} {thing}s"


def size_of(size: int) -> str:
    """Write a number of bytes with its unit: `640 B`, `1.2 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
