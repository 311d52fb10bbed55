"""What a terminal obeys instead of showing it."""

import unicodedata

DIRECTION = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def obeyed(text, *, allowed=""):
    """What a terminal, or whatever shows lines, would take for more than a sign."""
    return {
        letter
        for letter in text
        if letter not in allowed
        and (unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or ord(letter) in DIRECTION)
    }
