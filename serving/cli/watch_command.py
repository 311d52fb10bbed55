"""The command `watch`: refresh a corpus while its folders change."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from parquetry.errors import ParquetryError, SettingsError
from parquetry.flows.pipelines.observer import Observer
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, NamespaceOption, settings_for
from parquetry.serving.cli.run_commands import TargetsArgument
from parquetry.settings.sections import Settings
from parquetry.sources.local.access import SIDECAR
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.names import printable
from parquetry.sources.paths import within
from parquetry.sources.registry import Scope, scopes_of
from parquetry.sources.selection import Selection
from parquetry.storage.lake.current import published_sources

if TYPE_CHECKING:
    from parquetry.planning.report import RunReport

QUIET_MS = 300
"""milliseconds without a change before a refresh starts"""
LONGEST_MS = 5_000
"""milliseconds of continuous changes before a refresh starts anyway"""
AGAIN_SECONDS = 30.0
"""seconds before a failed refresh is retried"""
_NEWS = ("added", "changed", "moved", "permissions", "removed")
_LOOK_MS = 500
"""milliseconds between checks for an interrupt, a folder that is back, or a due retry"""


def watch(
    targets: TargetsArgument = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Refresh local folders whenever something in them changes.

    Without targets, all local sources. Ctrl-C stops it.
    """
    settings = settings_for(config, corpus)
    watched = _watched(settings, targets or (), namespace)
    # SIGTERM from a service manager is handled like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for each in watched:
        tell(f"Watching {printable(str(each.root / (each.alone or '')))} ({each.scope.name}).")
    try:
        _keep_fresh(settings, watched)
    except KeyboardInterrupt:
        tell("Stopped.")


@dataclass(frozen=True, slots=True)
class Watched:
    """A local source, and the part of its folder that matters."""

    scope: Scope
    root: Path
    """root of the source, with symbolic links resolved"""
    selection: Selection
    corpus: Path | None
    """folder of the corpus; changes inside are ignored, as they are the program's own"""
    alone: str | None = None
    """path of the only file of `root` in the source; None if the source is a folder"""

    def concerns(self, changed: str) -> bool:
        """Return True if a change at a path may change the documents of the source."""
        path = Path(changed)
        if not path.is_relative_to(self.root) or (self.corpus is not None and path.is_relative_to(self.corpus)):
            return False
        relative = "/".join(map(printable, path.relative_to(self.root).parts))
        if path.name == SIDECAR:
            relative = relative.rpartition("/")[0]
        if self.alone is not None:
            return relative in ("", self.alone)
        if any(within(relative, inner.path) for inner in self.scope.inner if inner.path):
            return False
        prefix = self.scope.prefix
        if relative and not (within(relative, prefix) or within(prefix, relative)):
            return False
        # The changed path may have been a folder.
        return not relative or not self.selection.leaves_out(relative, folder=True)


def _watched(settings: Settings, targets: Sequence[str], namespace: str | None) -> list[Watched]:
    """Return the sources that the targets name, or all local ones.

    Raises:
        SettingsError: a target is not local, or there is nothing to watch.
    """
    scopes = scopes_of(settings, targets, namespace, published=lambda: published_sources(settings.corpus.root))
    remote = [scope.name for scope in scopes if not is_local(scope.settings.uri)]
    if remote and (targets or len(remote) == len(scopes)):
        raise SettingsError(
            f"only local folders can be watched, and {remote[0]} is none; give it a `schedule`, or run "
            f"`parquetry refresh {remote[0]}` from time to time"
        )
    for name in remote:
        tell(f"Not watched, because it is no local folder: {name}.")
    corpus = local_path(settings.corpus.root).resolve() if is_local(settings.corpus.root) else None
    return [_local(scope, corpus) for scope in scopes if is_local(scope.settings.uri)]


def _local(scope: Scope, corpus: Path | None) -> Watched:
    root, selection = local_path(scope.settings.uri).resolve(), Selection((), scope.settings.exclude)
    if root.is_file():
        # Programs save a file by replacing it, which is an event of its folder only.
        return Watched(scope, root.parent, selection, corpus, printable(root.name))
    return Watched(scope, root, selection, corpus)


def _keep_fresh(settings: Settings, watched: Sequence[Watched]) -> None:
    """Refresh all sources, then those that change, forever."""
    due = list(watched)
    again_at, told = 0.0, ""
    for changed in _changes(sorted({each.root for each in watched})):
        due += [each for each in watched if each not in due and any(map(each.concerns, changed))]
        if not due or (not changed and time.monotonic() < again_at):
            continue
        problem = _refresh(settings, due)
        if problem and problem != told:
            _tell(f"failed, and is tried again from time to time: {problem}", error=True)
        due, again_at, told = due if problem else [], time.monotonic() + AGAIN_SECONDS, problem


def _changes(roots: Sequence[Path]) -> Iterator[set[str]]:
    """Yield changed paths, grouped until a pause; an empty set now and then. Folders may disappear and return."""
    known: dict[Path, tuple[int, int] | None] = dict.fromkeys(roots)
    while True:
        now = {root: _identity(root) for root in roots}
        turned = {str(root) for root in roots if now[root] != known[root]}
        known = now
        there = [root for root in roots if now[root] is not None]
        if not there:
            yield turned
            time.sleep(_LOOK_MS / 1000)
            continue
        for found in _events(there):
            yield found | turned
            turned = set()
            if any(_identity(root) != known[root] for root in roots):
                break


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return an identity that changes if the folder is replaced; None if it does not exist."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _events(roots: Sequence[Path]) -> Iterator[set[str]]:
    """Yield changed paths below existing folders, as reported by the operating system."""
    from watchfiles import watch as watch_folders
    from watchfiles._rust_notify import WatchfilesRustInternalError

    try:
        for found in watch_folders(
            *roots,
            watch_filter=None,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        ):
            yield {path for _, path in found}
    except FileNotFoundError:
        # The folder disappeared just now.
        return
    except WatchfilesRustInternalError as error:
        raise SettingsError(f"the system does not let these folders be watched: {error}") from error


def _refresh(settings: Settings, due: Sequence[Watched]) -> str:
    """Refresh and print one line; return the error, or an empty string."""
    from parquetry.flows.pipelines.documents import Request, run_refresh
    from parquetry.tasks.engine.base import DirectEngine

    request = Request(settings, scopes=tuple(each.scope for each in due))
    try:
        report = run_refresh(request, DirectEngine(), Observer())
    except (ParquetryError, OSError) as error:
        return str(error)
    _report(report)
    unindexed = () if report.index_error is None else (f"the search index is not written: {report.index_error}",)
    return "; ".join((*report.outages, *unindexed))


def _report(report: RunReport) -> None:
    counts = report.documents.as_dict()
    news = [f"{counts[name]} {name}" for name in _NEWS if counts[name]]
    bad = [failure for failure in report.failures if not failure.known]
    if news or bad:
        told = ", ".join([*news, *([f"{len(bad)} not indexed"] if bad else [])])
        _tell(f"{told} in {report.seconds:.1f} s, version {report.version}")
    for failure in bad:
        tell(f"  {failure.status} {failure.uri}: {failure.reason}: {failure.detail}", err=True)
    for kept in report.kept:
        _tell(f"kept: {kept}", error=True)
    for refusal in report.refused:
        _tell(f"refused: {refusal}", error=True)


def _tell(what: str, *, error: bool = False) -> None:
    tell(f"{datetime.now().astimezone():%H:%M:%S} {what}", err=error)
    sys.stdout.flush()
