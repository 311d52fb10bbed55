"""Values that operators keep on the Prefect server: the path of the settings file, and secrets for the environment."""

from __future__ import annotations

import os
from typing import Any, cast

from prefect.blocks.system import Secret
from prefect.variables import Variable

from parquetry.errors import SettingsError
from parquetry.known_secrets import announce

CONFIG = "parquetry_config"
"""Prefect variable with the settings file of runs whose deployment names none"""
SECRETS = "parquetry_secrets"
"""Prefect variable: name of an environment variable -> name of the `Secret` block with its value"""


def config_of_run(config: str | None) -> str | None:
    """Return the settings file of a deployment's run.

    Args:
        config: file that the run's parameters name; None for the Prefect variable's, if there is one.

    Raises:
        SettingsError: the variable is no text.
    """
    if config is not None:
        return config
    found = Variable.get(CONFIG)
    if found is not None and not isinstance(found, str):
        raise SettingsError(f"the Prefect variable {CONFIG} is no text; it names a settings file where runs are")
    return found


def bring_secrets() -> None:
    """Set the environment variables whose values are in blocks of the Prefect server, and register them as secrets.

    Raises:
        SettingsError: the variable is no object of texts, or a block is missing or no text.
    """
    wanted: Any = Variable.get(SECRETS) or {}
    if not isinstance(wanted, dict) or not all(
        name.isidentifier() and isinstance(block, str) for name, block in wanted.items()
    ):
        raise SettingsError(
            f'the Prefect variable {SECRETS} is no JSON object such as {{"OPENAI_API_KEY": "name-of-a-secret-block"}}'
        )
    for name, block in wanted.items():
        value = _secret(name, block)
        announce(value)
        os.environ[name] = value


def _secret(name: str, block: str) -> str:
    asked = f"{block!r}, which the Prefect variable {SECRETS} names for {name}"
    try:
        value = cast("Secret[Any]", Secret.load(block)).get()
    except ValueError as error:
        raise SettingsError(
            f"the Prefect server has no Secret block {asked}; create it, or correct the variable"
        ) from error
    if not isinstance(value, str) or not value or "\0" in value:
        raise SettingsError(f"the value of the Secret block {asked}, is no text")
    return value
