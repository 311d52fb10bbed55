"""Checks that reject unknown namespaces, sources and tags instead of returning no results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from parquetry.errors import SettingsError
from parquetry.nearest import hint
from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings
from parquetry.storage.database import Connection
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.names import Kind, known_names


def check_filters(connection: Connection, settings: Settings, filters: Filters) -> None:
    """Reject filters that name something the caller has no document of.

    A name that exists only on documents hidden from the caller gets the same message as one that does not exist.
    Names from the settings are known before their first refresh.

    Raises:
        SettingsError: unknown name; the message suggests similar ones.
    """
    asked: Mapping[Kind, Sequence[str]] = {
        "namespace": filters.namespaces,
        "source": () if filters.source is None else (filters.source,),
        "tag": (*filters.tags, *filters.any_tags),
    }
    for kind, names in asked.items():
        if names:
            known = known_names(connection, kind, filters.caller) | configured(settings, kind, filters.caller)
            check_known(kind, names, known, settings)


def check_namespace(
    connection: Connection,
    settings: Settings,
    namespace: str | None,
    caller: Caller | None = None,
    relation: str = "published",
) -> None:
    """Reject a namespace in which the caller may see nothing, as in `check_filters`."""
    if namespace is not None:
        known = known_names(connection, "namespace", caller, relation) | configured(settings, "namespace", caller)
        check_known("namespace", [namespace], known, settings)


def check_known(kind: str, names: Iterable[str], known: Iterable[str], settings: Settings) -> None:
    """Reject names that are not among the known ones.

    Raises:
        SettingsError: unknown name; the message suggests similar ones.
    """
    known = set(known)
    for name in names:
        if name not in known:
            raise SettingsError(f"no {kind} {name!r} in corpus {settings.corpus.root}; {hint(name, known)}")


def configured(settings: Settings, kind: Kind, caller: Caller | None) -> set[str]:
    """Return the names of a kind in the settings that the caller will be able to see."""
    sources = [source for source in settings.source if _shows(source, caller)]
    if kind == "source":
        return {source.name for source in sources}
    if kind == "tag":
        return {tag for source in sources for tag in source.tags}
    found = {source.namespace or settings.corpus.namespace for source in sources}
    if caller is None:
        found |= {each.name for each in settings.namespace}
        found |= {settings.corpus.namespace} if "namespace" in settings.corpus.model_fields_set else set()
    return found


def _shows(source: SourceSettings, caller: Caller | None) -> bool:
    if caller is None or source.visibility == "public":
        return True
    if source.visibility == "organization":
        return bool(caller.org_id) and caller.org_id == source.org_id
    return bool(caller.user_id) and caller.user_id == source.user_id
