"""The form of a token: `pqt_`, 256 random bits in base 62, and a checksum.

The form makes tokens recognisable in texts, so that they can be masked and found by scanners of secrets; the checksum
refuses mistyped ones without a look at the store.
"""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib

TOKEN_PREFIX = "pqt_"  # noqa: S105 - the beginning of every token
SHOWN = 8
"""characters after `pqt_` that are kept in clear, to recognise a token in a list"""
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SECRET_BYTES = 32
_SECRET = 43
"""characters of 256 bits in base 62"""
_CHECKSUM = 6
"""characters of a CRC-32 in base 62"""
_LENGTH = len(TOKEN_PREFIX) + _SECRET + _CHECKSUM


def new_token() -> str:
    """Return a new random token."""
    secret = _base62(int.from_bytes(secrets.token_bytes(_SECRET_BYTES), "big"), _SECRET)
    return f"{TOKEN_PREFIX}{secret}{_checksum(secret)}"


def is_token(text: str) -> bool:
    """Return True if a text has the form of a token, including the checksum."""
    if len(text) != _LENGTH or not text.isascii() or not text.startswith(TOKEN_PREFIX):
        return False
    secret, checksum = text[len(TOKEN_PREFIX) : -_CHECKSUM], text[-_CHECKSUM:]
    return secrets.compare_digest(_checksum(secret), checksum)


def digest_of(token: str) -> bytes:
    """Return the stored form of a token: SHA-256.

    Source: docs/decisions/0038-tokens.md.
    """
    return hashlib.sha256(token.encode()).digest()


def shown(token: str) -> str:
    """Return the beginning of a token that is kept in clear."""
    return token[: len(TOKEN_PREFIX) + SHOWN]


def _checksum(secret: str) -> str:
    return _base62(zlib.crc32(secret.encode()), _CHECKSUM)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
