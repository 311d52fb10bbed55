"""Tokens of forms: a page that did not load a form of this service cannot send one in a visitor's name. Pure."""

from __future__ import annotations

import hmac

FIELD = "form_token"
"""field of every form; scripts send it as a header"""
HEADER = "x-form-token"
_PURPOSE = b"parquetry form"


def form_token(visit: str) -> str:
    """Return the token of the forms of a visit.

    Args:
        visit: value of the visitor's cookie, which other pages can neither read nor send.
    """
    return hmac.new(visit.encode(), _PURPOSE, "sha256").hexdigest()


def is_form_token(given: str, visit: str | None) -> bool:
    """Return True if a form was loaded in this visit."""
    return visit is not None and hmac.compare_digest(given.encode("utf-8", "replace"), form_token(visit).encode())
