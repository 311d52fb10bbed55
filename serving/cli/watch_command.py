"""The command `watch`: refresh a corpus while its folders change."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from parquetry.errors import SettingsError
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, NamespaceOption, settings_for
from parquetry.serving.cli.run_commands import TargetsArgument
from parquetry.serving.jobs.watching import Watched, scopes_to_watch, watched_of
from parquetry.settings.sections import Settings
from parquetry.sources.local.source import is_local
from parquetry.sources.registry import Scope
from parquetry.swallowed_signals import send_swallowed_again

if TYPE_CHECKING:
    from parquetry.serving.jobs.keeping_fresh import ProgressLine


def watch(
    targets: TargetsArgument = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Refresh local folders whenever something in them changes.

    Without targets, all local sources, of documents and of chat sessions. Ctrl-C stops it.
    """
    settings = settings_for(config, corpus)
    watched = _watched(settings, targets or (), namespace)
    # SIGTERM from a service manager is handled like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    send_swallowed_again(signal.SIGTERM, KeyboardInterrupt)
    for each in watched:
        tell(f"Watching {each.place} ({each.scope.name}).")
    try:
        _keep_fresh(settings, watched)
    except KeyboardInterrupt:
        tell("Stopped.")


def _watched(settings: Settings, targets: Sequence[str], namespace: str | None) -> list[Watched]:
    """Return the sources that the targets name, or all local ones.

    Raises:
        SettingsError: a target is not local, or there is nothing to watch.
    """
    scopes = scopes_to_watch(settings, targets, namespace)
    remote = [scope.name for scope in scopes if not is_local(scope.settings.uri)]
    if remote and (targets or len(remote) == len(scopes)):
        raise SettingsError(
            f"only local folders can be watched, and {remote[0]} is none; give it a `schedule`, or run "
            f"`parquetry refresh {remote[0]}` from time to time"
        )
    for name in remote:
        tell(f"Not watched, because it is no local folder: {name}.")
    return watched_of(settings, scopes)


def _keep_fresh(settings: Settings, watched: Sequence[Watched]) -> None:
    """Refresh all sources, then those that change, forever."""
    from parquetry.flows.pipelines.observer import Observer
    from parquetry.serving.jobs.keeping_fresh import Freshness, refresh_scopes
    from parquetry.tasks.engine.base import DirectEngine

    def refresh(scopes: Sequence[Scope]) -> str:
        return refresh_scopes(settings, scopes, DirectEngine, Observer, tell_line)

    Freshness(settings, watched, (), refresh, tell_line).keep()


def tell_line(line: ProgressLine) -> None:
    """Print a line about a refresh, with the time."""
    text = line.text if line.is_detail else f"{datetime.now().astimezone():%H:%M:%S} {line.text}"
    tell(text, err=line.is_problem)
    sys.stdout.flush()
