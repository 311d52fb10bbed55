"""Checks of the values of a new token."""

from __future__ import annotations

import re
from collections.abc import Sequence

from parquetry.errors import SettingsError
from parquetry.nearest import hint
from parquetry.printing import visible
from parquetry.serving.access.principals import RIGHTS, Right

LONGEST_NAME = 200
"""maximum characters of a name, user or organization"""
_NAMESPACE = re.compile(r"[\w.-]{1,200}")
_RIGHTS: dict[str, Right] = {right: right for right in RIGHTS}


def checked_name(kind: str, name: str) -> str:
    """Return a name that people can read.

    Raises:
        SettingsError: it is empty, too long, or has characters that are not shown as they are.
    """
    if not name or name != name.strip():
        raise SettingsError(f"{kind} {name!r} is empty, or has blanks around it")
    if len(name) > LONGEST_NAME:
        raise SettingsError(f"{kind} has {len(name)} characters; at most {LONGEST_NAME} are allowed")
    if visible(name) != name:
        raise SettingsError(f"{kind} {name!r} has characters that cannot be seen")
    return name


def check_namespaces(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of namespaces, each once.

    Raises:
        SettingsError: there are none, or a name is not valid.
    """
    for name in names:
        if not _NAMESPACE.fullmatch(name):
            raise SettingsError(f"namespace {name!r} is not valid; use letters, digits, `_`, `.` and `-`")
    if not names:
        raise SettingsError("the list of namespaces is empty; leave it out for all namespaces")
    return tuple(dict.fromkeys(names))


def check_rights(names: Sequence[str]) -> tuple[Right, ...]:
    """Return rights in the order of `RIGHTS`, each once.

    Raises:
        SettingsError: there are none, or a name is unknown.
    """
    for name in names:
        if name not in _RIGHTS:
            raise SettingsError(f"no right {name!r}; {hint(name, RIGHTS)}")
    if not names:
        raise SettingsError(f"a token needs at least one right: {', '.join(RIGHTS)}")
    return tuple(each for each in RIGHTS if each in names)
