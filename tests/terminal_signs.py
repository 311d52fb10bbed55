"""Characters that a terminal obeys instead of showing."""

import unicodedata

DIRECTION = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def obeyed(text, *, allowed=""):
    """Return the characters that a terminal, or a program that shows lines, would interpret instead of showing."""
    return {
        letter
        for letter in text
        if letter not in allowed
        and (unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or ord(letter) in DIRECTION)
    }
