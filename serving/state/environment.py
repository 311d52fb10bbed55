"""Settings of the service's processes: the parent hands on the file and the options, and each process reads them again.

Nothing secret is handed on: keys stay in the settings file and in the environment, where each process finds them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings, load_settings, override

VARIABLE = "PARQUETRY_SERVE"
"""environment variable with the JSON object of `exported`"""


def exported(config: str | os.PathLike[str] | None, overrides: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the value of the environment variable for the processes of a service.

    Args:
        config: the settings file; None for the command line's default.
        overrides: section -> key -> value of the command's options.
    """
    return json.dumps({"config": None if config is None else os.fspath(config), "overrides": overrides})


def settings_from_environment() -> Settings:
    """Return the settings that the parent process resolved.

    Raises:
        SettingsError: the variable is missing or broken, or as `load_settings`.
    """
    told = os.environ.get(VARIABLE)
    if told is None:
        raise SettingsError(f"{VARIABLE} is not set; start the service with `parquetry serve`")
    try:
        given = json.loads(told)
        config, overrides = given["config"], given["overrides"]
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{VARIABLE} is not what `parquetry serve` sets: {type(error).__name__}") from error
    settings = load_settings(config)
    return override(settings, overrides) if overrides else settings
