"""Paths as people type them."""

from __future__ import annotations

from pathlib import Path

from knowledge.errors import SettingsError


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
