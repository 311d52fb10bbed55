"""Addresses of services in settings."""

from __future__ import annotations

from urllib.parse import urlsplit


def plain_url(value: str, example: str) -> str:
    """Return the address of a service without the slash at its end.

    Args:
        value: the address, as in the settings.
        example: an address of such a service, for messages.

    Raises:
        ValueError: it is no http or https URL, or holds a user, a query or a fragment.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or any(letter.isspace() or not letter.isprintable() for letter in value):
        raise ValueError(f"must be an address such as {example}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must have no user, query or fragment; the key belongs into api_key")
    return value.rstrip("/")
