"""`python -m parquetry.deployments`: serve the deployments of a settings file on this machine until stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from parquetry.deployments.command import complain, run_command
from parquetry.deployments.definitions import check_deployments, deployments_of
from parquetry.errors import SettingsError
from parquetry.flows.local import api_is_configured
from parquetry.flows.orchestration.parent_watch import STARTER
from parquetry.flows.orchestration.server import ENVIRONMENT, HEARTBEAT, HEARTBEAT_SECONDS, is_free, lasting_server
from parquetry.freed_memory import keep_little
from parquetry.garbage import collect_seldom
from parquetry.ids import settings_hash
from parquetry.printing import tell
from parquetry.settings.sections import DEFAULT_FILE, load_settings
from parquetry.swallowed_signals import send_swallowed_again

USUAL_PORT = 4200
"""Prefect's default port"""


def serve(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings file; default parquetry.toml if there is one.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help="Of the Prefect server that is started here; default 4200, or any free one if that is taken.",
        ),
    ] = None,
) -> None:
    """Serve scheduled and on-demand runs on this machine.

    Uses the Prefect API that PREFECT_API_URL or the active profile names, or starts a server with its UI.
    """
    settings = load_settings(config)
    check_deployments(settings)
    file = config or (Path(DEFAULT_FILE) if Path(DEFAULT_FILE).exists() else None)
    with _api(file, port) as log:
        from parquetry.deployments.departed import clear_departed
        from parquetry.deployments.service import serve as serve_until_stopped
        from parquetry.deployments.zombies import watch_for_zombies

        watch_for_zombies()
        deployments = deployments_of(settings, file)
        for deployment in deployments:
            when = ", ".join(str(getattr(each.schedule, "cron", "")) for each in deployment.schedules or ())
            tell(f"{deployment.full_name}: {f'{when} (UTC)' if when else 'on demand'}")
        for source in settings.source:
            if not source.schedule:
                tell(f"Source {source.name} has no schedule; it is refreshed on demand only.")

        def ready(ids: Collection[UUID]) -> None:
            for name in clear_departed(str(file.resolve()) if file else None, ids):
                tell(f"{name}: no longer scheduled by the settings; its schedule is cleared.")
            tell("Serving; Ctrl-C stops.")

        serve_until_stopped(deployments, ready, complain, log)
    tell("Stopped.")


@contextmanager
def _api(config: Path | None, port: int | None) -> Iterator[Path | None]:
    """Serve with the configured API, yielding None, or with a bundled server, yielding its log file."""
    os.environ.update({key: value for key, value in ENVIRONMENT.items() if key not in os.environ})
    if api_is_configured():
        if port is not None:
            raise SettingsError("--port is for a server started here, but PREFECT_API_URL or the profile names one")
        yield None
        return
    with lasting_server(_home(config), _port(port)) as server:
        # Set before Prefect is imported, so that child processes of runs inherit it.
        os.environ.setdefault(HEARTBEAT, str(HEARTBEAT_SECONDS))
        os.environ |= {"PREFECT_API_URL": server.api_url, STARTER: str(os.getpid())}
        server.wait()
        from parquetry.deployments.service import crash_abandoned_runs

        crash_abandoned_runs()
        tell(f"Prefect UI: {server.ui_url}")
        yield server.log


def _home(config: Path | None) -> Path:
    """Return the folder of the server's database: one per settings file, persistent to keep the history of runs."""
    base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "parquetry"
    place = (config or Path(DEFAULT_FILE)).resolve()
    return base / f"prefect-{place.parent.name}-{settings_hash({'config': str(place)})}"


def _port(wanted: int | None) -> int:
    if wanted:
        if not is_free(wanted):
            raise SettingsError(f"port {wanted} of 127.0.0.1 is in use; choose another with --port")
        return wanted
    return USUAL_PORT if is_free(USUAL_PORT) else 0


def _leave_in_order(*_: object) -> None:
    """Handle SIGTERM, before and after the deployments are served, like Ctrl-C, so that the server is stopped."""
    raise KeyboardInterrupt


def main() -> None:
    """Serve until interrupted."""
    # The processes of runs inherit what PyArrow has to know before it is imported.
    keep_little()
    collect_seldom()
    signal.signal(signal.SIGTERM, _leave_in_order)
    send_swallowed_again(signal.SIGTERM, KeyboardInterrupt)
    run_command(serve, "python -m parquetry.deployments")


if __name__ == "__main__":
    main()
