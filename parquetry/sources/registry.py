"""Resolution of a name, path or URL to its source and provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from parquetry.errors import SettingsError
from parquetry.model import Access
from parquetry.nearest import nearest
from parquetry.settings.home import check_place
from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings
from parquetry.sources.base import Place, Source
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.names import printable
from parquetry.sources.nesting import Inner, inner_of, spot_of
from parquetry.sources.paths import covers, within
from parquetry.sources.providers import open_place
from parquetry.sources.uploads.identity import UPLOADS

Content = Literal["documents", "sessions"]
"""content of a source"""


@dataclass(frozen=True, slots=True)
class Scope:
    """Source to refresh, or the part of it below a path."""

    settings: SourceSettings
    namespace: str
    prefix: str
    """prefix of the paths to refresh; empty for the whole source"""
    inner: tuple[Inner, ...] = ()
    """parts of the source that belong to other sources"""
    paths: frozenset[str] = frozenset()
    """documents to refresh, each by its path, instead of those of a prefix"""
    removes: bool = True
    """False to keep the published documents that the source does not list"""

    @property
    def name(self) -> str:
        return self.settings.name

    def covers(self, path: str) -> bool:
        """Return True if a document of the source is within this scope."""
        return covers(path, self.prefix, self.paths)


@dataclass(frozen=True, slots=True)
class PublishedSource:
    """Source with documents or sessions in a corpus."""

    namespace: str
    name: str
    content: Content


def scopes_of(
    settings: Settings,
    targets: Sequence[str],
    namespace: str | None = None,
    content: Content = "documents",
    published: Callable[[], Iterable[PublishedSource]] = tuple,
) -> tuple[Scope, ...]:
    """Resolve targets to the scopes that a refresh covers.

    A target is the name of a configured source, a path within one, or any other folder or file; the latter becomes
    an ad-hoc source named by its place.

    Args:
        settings: settings with the configured sources.
        targets: as typed; empty for all configured sources.
        namespace: only sources of this namespace; also the namespace of ad-hoc targets.
        content: only sources with this content.
        published: returns the sources of the corpus; called for targets that are not configured.

    Raises:
        SettingsError: nothing to refresh, or a target that does not exist or belongs to another source.
    """
    found = _Targets(settings, namespace, content, published)
    if not targets:
        if not found.eligible:
            raise SettingsError(_nothing_configured(settings, namespace, content))
        return tuple(found.eligible)
    # A folder before the folders within it: they are refreshed with it.
    for target in targets:
        check_place(target)
    in_order = sorted(targets, key=lambda target: len(spot_of(target).parts))
    scopes = {target: found.scopes(target) for target in in_order}
    return _without_overlap([scope for target in targets for scope in scopes[target]])


class _Targets:
    """Resolves targets; arguments as for `scopes_of`."""

    def __init__(
        self,
        settings: Settings,
        namespace: str | None,
        content: Content,
        published: Callable[[], Iterable[PublishedSource]],
    ) -> None:
        self._namespace, self._content = namespace, content
        self._own_namespace = namespace or settings.corpus.namespace
        self._sources = [(source, _namespace_of(source, settings)) for source in settings.source]
        self._configured = [
            Scope(source, space, "", inner_of(source, self._sources)) for source, space in self._sources
        ]
        self.eligible = [
            scope
            for scope in self._configured
            if namespace in (None, scope.namespace) and scope.settings.content == content
        ]
        """configured sources of this namespace and content"""
        self._published = published

    @cached_property
    def _known(self) -> list[tuple[SourceSettings, str, Content]]:
        """Sources of the corpus that are not configured, and the ad-hoc sources of this run."""
        named = {(scope.namespace, scope.name) for scope in self._configured}
        return [
            (SourceSettings(name=each.name, uri=each.name), each.namespace, each.content)
            for each in self._published()
            if "://" in each.name and (each.namespace, each.name) not in named
        ]

    def scopes(self, target: str) -> list[Scope]:
        """Resolve one target."""
        named = [scope for scope in self._configured if scope.name == target]
        if named:
            return self._eligible(target, named)[:1]
        uri = target if not is_local(target) else self._existing(target).as_uri()
        holders = _innermost(uri, self._configured)
        if self._content == "sessions":
            # Documents may be refreshed both as documents and as chats if requested.
            holders = [scope for scope in holders if scope.settings.content == "sessions"]
        if holders:
            return self._eligible(target, holders)
        return [self._ad_hoc(uri)]

    def by_name(self, name: str) -> Scope:
        """Return the scope of a whole source that is named by its place."""
        source = SourceSettings(name=name, uri=name)
        return Scope(source, self._own_namespace, "", self._inner(source))

    def _existing(self, target: str) -> Path:
        path = local_path(target)
        if not _exists(path):
            names = ", ".join(scope.name for scope in self.eligible) or "none configured"
            near = nearest(target, (scope.name for scope in self.eligible))
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise SettingsError(
                f"{printable(target)} is neither a folder or file nor the name of a source ({names}){meant}"
            )
        return path.resolve()

    def _eligible(self, target: str, holders: Sequence[Scope]) -> list[Scope]:
        """Return the scopes of a target that match this refresh; raise if none do."""
        found = [scope for scope in holders if replace(scope, prefix="") in self.eligible]
        if found:
            return found
        holder = holders[0]
        what = f"source {holder.name}" if target == holder.name else f"{printable(target)}: source {holder.name}"
        if holder.settings.content != self._content:
            other = "parquetry sessions refresh" if holder.settings.content == "sessions" else "parquetry refresh"
            raise SettingsError(f"{what} holds {holder.settings.content}; run `{other} {printable(target)}`")
        raise SettingsError(f"{what} belongs to namespace {holder.namespace}; leave out --namespace")

    def _ad_hoc(self, uri: str) -> Scope:
        """Return an ad-hoc source, or the matching part of one that the corpus or this run already knows."""
        known = [
            Scope(source, space, "", self._inner(source))
            for source, space, content in self._known
            if (space, content) == (self._own_namespace, self._content)
        ]
        for scope in _innermost(uri, known):
            return scope
        source = SourceSettings(name=uri, uri=uri)
        self._known.append((source, self._own_namespace, self._content))
        return Scope(source, self._own_namespace, "", self._inner(source))

    def _inner(self, source: SourceSettings) -> tuple[Inner, ...]:
        known = [(other, space) for other, space, _ in self._known if other.name != source.name]
        return inner_of(source, [*self._sources, *known])


def _innermost(uri: str, scopes: Iterable[Scope]) -> list[Scope]:
    """Return the deepest sources that contain a place, each with the place as its prefix."""
    holders: list[tuple[int, Scope]] = []
    for scope in scopes:
        there = spot_of(scope.settings.uri, scope.settings.options)
        # A target has no options; it uses those of the source.
        prefix = spot_of(uri, scope.settings.options).below(there)
        if prefix is not None:
            holders.append((len(there.parts), replace(scope, prefix=prefix)))
    deepest = max((depth for depth, _ in holders), default=0)
    return [scope for depth, scope in holders if depth == deepest]


def _nothing_configured(settings: Settings, namespace: str | None, content: Content) -> str:
    """Return the error message for an empty refresh, with the next step."""
    what = "no source" if content == "documents" else 'no source with content = "sessions"'
    others = [source for source in settings.source if namespace in (None, _namespace_of(source, settings))]
    if others and content == "documents":
        return (
            'every configured source has content = "sessions"; run `parquetry sessions refresh`, or '
            "`parquetry sessions plan` to see what it would cost"
        )
    if namespace is None:
        return f"{what} is configured; name folders to refresh, or add a [[source]] table"
    near = nearest(namespace, (_namespace_of(source, settings) for source in settings.source))
    meant = f" did you mean {' or '.join(near)}? Else" if near else ""
    return f"{what} is configured in namespace {namespace};{meant} name folders to refresh, or add a [[source]] table"


def has_sources(settings: Settings, namespace: str | None) -> bool:
    """Return True if sources of documents are configured, in the namespace if one is given."""
    return any(
        source.content == "documents" and namespace in (None, _namespace_of(source, settings))
        for source in settings.source
    )


def _namespace_of(source: SourceSettings, settings: Settings) -> str:
    return source.namespace or settings.corpus.namespace


def _without_overlap(scopes: Sequence[Scope]) -> tuple[Scope, ...]:
    """Drop scopes within other scopes, so that each document is covered once."""

    def holds(one: Scope, other: Scope) -> bool:
        same = (one.namespace, one.name) == (other.namespace, other.name)
        return same and not one.paths and within(other.prefix, one.prefix)

    kept: list[Scope] = []
    for scope in scopes:
        if not any(holds(each, scope) for each in kept):
            kept = [*(each for each in kept if not holds(scope, each)), scope]
    return tuple(kept)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        # A parent folder without permission, or a name longer than the filesystem allows.
        raise SettingsError(f"{printable(str(path))} cannot be opened: {error.strerror}") from error


def scope_of_source(
    settings: Settings, namespace: str, name: str, published: Callable[[], Iterable[PublishedSource]] = tuple
) -> Scope:
    """Return the scope of the whole source of some documents of a corpus.

    Args:
        settings: settings with the configured sources.
        namespace: namespace of the source.
        name: name of the source.
        published: as for `scopes_of`.

    Raises:
        SettingsError: it is not configured, and its name is not a place.
    """
    found = _Targets(settings, namespace, "documents", published)
    for scope in found.eligible:
        if scope.name == name:
            return scope
    if "://" in name:
        return found.by_name(name)
    raise SettingsError(
        f"source {name!r} of namespace {namespace} is not configured any more; add its [[source]] table"
    )


def open_source(scope: Scope, corpus_root: str) -> Source:
    """Open the source of a scope.

    Raises:
        SettingsError: no provider for this kind of place, or invalid settings.
    """
    settings = scope.settings
    if settings.name == UPLOADS:
        from parquetry.sources.uploads.source import open_uploads

        return open_uploads(scope)
    return open_place(
        Place(
            name=settings.name,
            uri=settings.uri,
            access=Access(settings.visibility, settings.org_id, settings.user_id, settings.tags),
            include=settings.include,
            exclude=settings.exclude,
            options=settings.options,
            inner=tuple(each.path for each in scope.inner if each.path),
            corpus=local_path(corpus_root) if is_local(corpus_root) else None,
        )
    )
