"""Options of a source whose values are in the environment: `secret_access_key = "env:ARCHIVE_KEY"`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from parquetry.errors import SettingsError
from parquetry.known_secrets import announce, names_secret
from parquetry.settings.base import BY_VARIABLE

_NEVER_WRITTEN = frozenset({"secret_access_key", "session_token"})
"""options of our own that the settings may not hold; those of other packages may have values that are no secrets"""


def with_environment(source: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the values of environment variables, and register those that are secrets.

    Args:
        source: name of the source, for messages.
        options: the table `[source.options]`.

    Raises:
        SettingsError: a variable is not set, or empty, or a secret is written into the settings.
    """
    found = dict(options)
    for key, value in options.items():
        if not isinstance(value, str) or not value.startswith(BY_VARIABLE):
            if key in _NEVER_WRITTEN:
                raise SettingsError(
                    f"source {source}: options: {key} would be stored and shown; put it into the environment and write "
                    f'the variable\'s name: {key} = "env:ARCHIVE_KEY"'
                )
            continue
        name = value.removeprefix(BY_VARIABLE)
        found[key] = os.environ.get(name) if name else None
        if not found[key]:
            raise SettingsError(
                f"source {source}: options: {key} = {value!r}: the environment has no variable {name!r}, or it is empty"
            )
        if names_secret(key) or names_secret(name):
            announce(found[key])
    return found
