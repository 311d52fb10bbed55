"""What every flow does at its beginning: find its settings, end with who started it, be found in the UI."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence

from prefect import runtime
from prefect.client.orchestration import get_client

from flows.guarded import end_with_starter
from knowledge.settings import Settings, load_settings, override
from knowledge.sources.registry import Scope

_OWN_PROCESS = "PREFECT__FLOW_RUN_ID"
"""environment variable that Prefect sets where a worker or service started this process for one flow run"""


def settings_of_run(config: str | None, corpus: str | None) -> Settings:
    """The settings of a flow run.

    Args:
        config: settings file; None for parquetry.toml in the working folder.
        corpus: folder of the corpus, over what the file says.

    Raises:
        SettingsError: as `load_settings`.
    """
    settings = load_settings(config)
    return override(settings, {"corpus": {"root": corpus}}) if corpus else settings


def begin() -> None:
    """Tie a process that was started for one flow run to that run."""
    if _OWN_PROCESS in os.environ:
        end_with_starter()
        atexit.register(_hush)


def _hush() -> None:
    """Let the end of a flow run's process be silent.

    Prefect's daemon threads keep objects of DuckDB alive to the very end, which its binding layer then reports as
    leaks, a hundred lines in the worker's log after every run.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def tag(scopes: Sequence[Scope]) -> None:
    """Runs are found in the UI by their namespaces and sources, whatever started them."""
    tags = {f"namespace:{scope.namespace}" for scope in scopes} | {f"source:{scope.name}" for scope in scopes}
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(runtime.flow_run.id)
        client.update_flow_run(run.id, tags=sorted({*run.tags, *tags, "parquetry"}))
