"""Text of strangers on a terminal."""

from __future__ import annotations


def shown(text: str) -> str:
    """One line of text in which `?` stands for what a terminal would obey instead of showing it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
