"""Sources that are watched, and the changes in their folders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings
from parquetry.sources.local.access import SIDECAR
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.names import printable
from parquetry.sources.nesting import place_in
from parquetry.sources.paths import within
from parquetry.sources.registry import Content, Scope, scopes_of
from parquetry.sources.selection import Selection
from parquetry.storage.lake.current import published_sources

QUIET_MS = 300
"""milliseconds without a change before a refresh starts"""
LONGEST_MS = 5_000
"""milliseconds of continuous changes before a refresh starts anyway"""
_LOOK_MS = 500
"""milliseconds between checks for an interrupt, a folder that is back, or a due retry"""


@dataclass(frozen=True, slots=True)
class Watched:
    """A local source, and the part of its folder that matters."""

    scope: Scope
    root: Path
    """root of the source, with symbolic links resolved"""
    selection: Selection
    ours: tuple[Path, ...] = ()
    """folders of the program itself; changes inside are ignored"""
    alone: str | None = None
    """path of the only file of `root` in the source; None if the source is a folder"""

    @property
    def place(self) -> str:
        """Folder or file, as it is shown."""
        return printable(str(self.root / (self.alone or "")))

    def concerns(self, changed: str) -> bool:
        """Return True if a change at a path may change the documents of the source."""
        path = Path(changed)
        if not path.is_relative_to(self.root) or any(path.is_relative_to(each) for each in self.ours):
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


def scopes_to_watch(settings: Settings, targets: Sequence[str], namespace: str | None) -> tuple[Scope, ...]:
    """Return the sources that the targets name, of documents or of chat sessions; without targets, all of both.

    Raises:
        SettingsError: as for `scopes_of`.
    """

    def resolved(content: Content, names: Sequence[str]) -> tuple[Scope, ...]:
        root = settings.corpus.root
        return scopes_of(settings, names, namespace, content, published=lambda: published_sources(root))

    names: dict[Content, list[str]] = {"documents": [], "sessions": []}
    if targets:
        for target in targets:
            names[_content_of(target, resolved)].append(target)
        chosen = [resolved(content, those) for content, those in names.items() if those]
    else:
        contents = {source.content for source in settings.source if _is_in(source.namespace, namespace, settings)}
        chosen = [resolved(content, ()) for content in names if content in contents or not contents]
    return tuple(scope for scopes in chosen for scope in scopes)


def watched_of(settings: Settings, scopes: Sequence[Scope], ours: Sequence[Path] = ()) -> list[Watched]:
    """Return how the local ones of some sources are watched.

    Args:
        settings: settings of the corpus.
        scopes: sources.
        ours: further folders whose changes are the program's own.
    """
    corpus = [local_path(settings.corpus.root).resolve()] if is_local(settings.corpus.root) else []
    program = (*corpus, *(each.resolve() for each in ours))
    return [_local(scope, program) for scope in scopes if is_local(scope.settings.uri)]


def target_of(scope: Scope) -> str:
    """Return the target that names a scope: the source, or the place of a part of it."""
    return place_in(scope.settings.uri, scope.prefix) if scope.prefix else scope.name


def changes(roots: Sequence[Path], stopping: threading.Event) -> Iterator[set[str]]:
    """Yield changed paths, grouped until a pause; an empty set now and then. Folders may disappear and return.

    Args:
        roots: folders to watch, existing or not.
        stopping: ends the changes once it is set.
    """
    known: dict[Path, tuple[int, int] | None] = dict.fromkeys(roots)
    while not stopping.is_set():
        now = {root: _identity(root) for root in roots}
        turned = {str(root) for root in roots if now[root] != known[root]}
        known = now
        there = [root for root in roots if now[root] is not None]
        if not there:
            yield turned
            stopping.wait(_LOOK_MS / 1000)
            continue
        for found in _events(there, stopping):
            yield found | turned
            turned = set()
            if any(_identity(root) != known[root] for root in roots):
                break


def _content_of(target: str, resolved: Callable[[Content, Sequence[str]], tuple[Scope, ...]]) -> Content:
    """Return the content of the source that a target names: documents, unless it holds sessions by the settings."""
    try:
        resolved("documents", (target,))
    except SettingsError:
        with suppress(SettingsError):
            if all(scope.settings.content == "sessions" for scope in resolved("sessions", (target,))):
                return "sessions"
        raise
    return "documents"


def _is_in(source: str | None, namespace: str | None, settings: Settings) -> bool:
    return namespace in (None, source or settings.corpus.namespace)


def _local(scope: Scope, ours: tuple[Path, ...]) -> Watched:
    root, selection = local_path(scope.settings.uri).resolve(), Selection((), scope.settings.exclude)
    if root.is_file():
        # Programs save a file by replacing it, which is an event of its folder only.
        return Watched(scope, root.parent, selection, ours, printable(root.name))
    return Watched(scope, root, selection, ours)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return an identity that changes if the folder is replaced; None if it does not exist."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _events(roots: Sequence[Path], stopping: threading.Event) -> Iterator[set[str]]:
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
            stop_event=stopping,
        ):
            yield {path for _, path in found}
    except FileNotFoundError:
        # The folder disappeared just now.
        return
    except WatchfilesRustInternalError as error:
        raise SettingsError(f"the system does not let these folders be watched: {error}") from error
