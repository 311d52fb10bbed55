"""Paths and URLs as typed by people."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from parquetry.errors import SettingsError


def expanded(path: str) -> Path:
    """Return a path with `~` or `~name` replaced by the user's home.

    Raises:
        SettingsError: the user does not exist.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        home = path.partition("/")[0]
        raise SettingsError(f"{home} is the home of no user here; write ./{path} for a folder of that name") from error


def user_cache() -> Path:
    """Return the folder for what this program keeps and can make or fetch again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parquetry"


def readable_url(place: str) -> str:
    """Return a path or URL unchanged if it can be parsed.

    Raises:
        ValueError: it is a malformed URL.
    """
    try:
        if "://" in place:
            urlsplit(place)
    except ValueError as error:
        raise ValueError(f"is not a URL ({error})") from error
    return place


def check_place(place: str) -> None:
    """Refuse an invalid place.

    Raises:
        SettingsError: it is a malformed URL.
    """
    try:
        readable_url(place)
    except ValueError as error:
        raise SettingsError(f"{place} {error}") from error
