"""Scopes of a refresh over documents that were handed in."""

from __future__ import annotations

from collections.abc import Iterable

from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings
from parquetry.sources.registry import Scope
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.store import UploadStore, root_of_uploads


def scope_of_uploads(settings: Settings, namespace: str, *paths: str) -> Scope:
    """Return the scope of a refresh over uploads of a namespace.

    Args:
        settings: gives the place of the uploads.
        namespace: their namespace.
        paths: paths of uploads, exactly these; none, or an empty one, for all.
    """
    source = SourceSettings(name=UPLOADS, uri=root_of_uploads(settings))
    return Scope(source, namespace, "", paths=frozenset(paths) if all(paths) else frozenset())


def uploads_of(settings: Settings, namespace: str | None = None, besides: Iterable[str] = ()) -> tuple[Scope, ...]:
    """Return the scopes of all uploads: of one namespace, or of each that has some.

    Args:
        settings: give the place of the uploads.
        namespace: the only namespace, if it has some.
        besides: further namespaces.

    Raises:
        SettingsError: their place cannot be opened.
        TransientError: it cannot be reached.
    """
    names = sorted({*UploadStore(settings).namespaces(), *besides})
    return tuple(scope_of_uploads(settings, name) for name in names if namespace in (None, name))
