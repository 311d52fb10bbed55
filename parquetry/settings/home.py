"""Paths and URLs as people type them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from parquetry.errors import SettingsError


def expanded(path: str) -> Path:
    """A path with the home of a user in the place of `~` or `~name`.

    Raises:
        SettingsError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        home = path.partition("/")[0]
        raise SettingsError(f"{home} is the home of no user here; write ./{path} for a folder of that name") from error


def readable_url(place: str) -> str:
    """A path or a URL, as it is.

    Raises:
        ValueError: it is a URL that cannot be taken apart.
    """
    try:
        if "://" in place:
            urlsplit(place)
    except ValueError as error:
        raise ValueError(f"is not a URL ({error})") from error
    return place


def check_place(place: str) -> None:
    """Refuse what is no place.

    Raises:
        SettingsError: it is a URL that cannot be taken apart.
    """
    try:
        readable_url(place)
    except ValueError as error:
        raise SettingsError(f"{place} {error}") from error
