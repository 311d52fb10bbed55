"""Which source a name, path or URL means, and the provider that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from knowledge.changes import within
from knowledge.errors import SettingsError
from knowledge.model import Access
from knowledge.settings import Settings, SourceSettings
from knowledge.sources.base import Place, Source
from knowledge.sources.local import is_local, local_path
from knowledge.sources.names import printable
from knowledge.sources.providers import kind_of, open_place


@dataclass(frozen=True, slots=True)
class Scope:
    """A source, or the part of it below a path, that a refresh concerns."""

    settings: SourceSettings
    namespace: str
    prefix: str
    """only paths that start with this; empty for the whole source"""

    @property
    def name(self) -> str:
        return self.settings.name


def scopes_of(
    settings: Settings,
    targets: Sequence[str],
    namespace: str | None = None,
    content: Literal["documents", "sessions"] = "documents",
) -> tuple[Scope, ...]:
    """What a refresh of some targets concerns.

    A target is the name of a configured source, a path within one, or any other folder or file, which is a source of
    its own named by its place.

    Args:
        settings: with the configured sources.
        targets: as typed; none means all configured sources.
        namespace: only sources of this namespace; the namespace of targets that are not configured.
        content: only sources of this.

    Raises:
        SettingsError: nothing to refresh, or a target that does not exist.
    """
    configured = [
        Scope(source, source.namespace or settings.corpus.namespace, "")
        for source in settings.source
        if namespace in (None, source.namespace or settings.corpus.namespace) and source.content == content
    ]
    if not targets:
        if not configured:
            what = "no source" if content == "documents" else 'no source with content = "sessions"'
            where = f" in namespace {namespace}" if namespace else ""
            raise SettingsError(f"{what} is configured{where}; name folders to refresh, or add a [[source]] table")
        return tuple(configured)
    found = [_scope(target, configured, namespace or settings.corpus.namespace) for target in targets]
    return _without_overlap(found)


def _without_overlap(scopes: Sequence[Scope]) -> tuple[Scope, ...]:
    """Every document once, however many of the targets it stands below."""

    def covers(one: Scope, other: Scope) -> bool:
        return (one.namespace, one.name) == (other.namespace, other.name) and within(other.prefix, one.prefix)

    kept: list[Scope] = []
    for scope in scopes:
        if not any(covers(each, scope) for each in kept):
            kept = [*(each for each in kept if not covers(scope, each)), scope]
    return tuple(kept)


def _scope(target: str, configured: Sequence[Scope], namespace: str) -> Scope:
    for scope in configured:
        if scope.name == target:
            return scope
    if not is_local(target):
        return _remote_scope(target, configured, namespace)
    path = local_path(target)
    if not _exists(path):
        names = ", ".join(scope.name for scope in configured) or "none configured"
        raise SettingsError(f"{printable(target)} is neither a folder or file nor the name of a source ({names})")
    path = path.resolve()
    for scope in configured:
        if is_local(scope.settings.uri):
            root = local_path(scope.settings.uri).resolve()
            if path.is_relative_to(root):
                return Scope(scope.settings, scope.namespace, "/".join(map(printable, path.relative_to(root).parts)))
    root, prefix = (path, "") if path.is_dir() else (path.parent, printable(path.name))
    return Scope(SourceSettings(name=root.as_uri(), uri=root.as_uri()), namespace, prefix)


def _remote_scope(target: str, configured: Sequence[Scope], namespace: str) -> Scope:
    """The part of a configured source that a URL is, else a source of its own, named by its URL."""
    for scope in configured:
        root = scope.settings.uri.rstrip("/") + "/"
        if not is_local(root) and _holds(root, f"{target.rstrip('/')}/"):
            return Scope(
                scope.settings, scope.namespace, target.removeprefix(root).rstrip("/") if target + "/" != root else ""
            )
    return Scope(SourceSettings(name=target, uri=target), namespace, "")


def _holds(root: str, target: str) -> bool:
    """Whether a URL is a source or a place below it; what a page lists need not stand below its own URL."""
    return target == root if kind_of(root) in ("http", "https", "youtube") else target.startswith(root)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        # No permission on the way there, or a name longer than any file's.
        raise SettingsError(f"{printable(str(path))} cannot be opened: {error.strerror}") from error


def scope_of_source(settings: Settings, namespace: str, name: str) -> Scope:
    """The whole of a source that documents of a corpus came from.

    Raises:
        SettingsError: it is not configured, and its name does not tell its place.
    """
    for source in settings.source:
        if source.name == name and (source.namespace or settings.corpus.namespace) == namespace:
            return Scope(source, namespace, "")
    if "://" in name:
        return Scope(SourceSettings(name=name, uri=name), namespace, "")
    raise SettingsError(
        f"source {name!r} of namespace {namespace} is not configured any more; add its [[source]] table"
    )


def open_source(scope: Scope, corpus_root: str) -> Source:
    """The provider of a source.

    Raises:
        SettingsError: no provider for this kind of place, or its settings are unusable.
    """
    settings = scope.settings
    return open_place(
        Place(
            name=settings.name,
            uri=settings.uri,
            access=Access(settings.visibility, settings.org_id, settings.user_id, settings.tags),
            include=settings.include,
            exclude=settings.exclude,
            options=settings.options,
            corpus=local_path(corpus_root) if is_local(corpus_root) else None,
        )
    )
