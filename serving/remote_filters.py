"""Filters in the form in which a service takes them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parquetry.errors import SettingsError

if TYPE_CHECKING:
    from parquetry.storage.search.filters import Filters


def filters_as_json(filters: Filters, namespace: str) -> tuple[dict[str, Any], str]:
    """Return filters as a service takes them, and its `type`: documents, entries or both.

    Args:
        filters: the filters.
        namespace: the one namespace of the request.

    Raises:
        SettingsError: a service has no such filter.
    """
    refused = {
        "caller": "the token names the caller",
        "any_tags": "use tags, or one search for each tag",
        "where": "use the other filters",
        "subsets": "search the vector store by OpenAI's API",
        "attributes": "use metadata",
    }
    for name, advice in refused.items():
        if getattr(filters, name):
            raise SettingsError(f"a service has no filter {name!r}; {advice}")
    if filters.namespaces not in ((), (namespace,)):
        raise SettingsError(f"this object is for namespace {namespace!r}; open another one for another namespace")
    found = {
        "filename": filters.filename,
        "tags": list(filters.tags) or None,
        "user_id": filters.user_id,
        "source": filters.source or filters.origin,
        "media_type": filters.media_type,
        "metadata": _metadata(filters) or None,
        "since": None if filters.since is None else filters.since.isoformat(),
        "until": None if filters.until is None else filters.until.isoformat(),
    }
    return {name: value for name, value in found.items() if value is not None}, filters.what


def _metadata(filters: Filters) -> dict[str, Any]:
    """Return the conditions on metadata.

    Raises:
        SettingsError: two conditions of one kind are on one key, of which a service would see the last alone.
    """
    found: dict[str, Any] = {}
    conditions: list[tuple[str, str | None, Any]] = [(path, None, value) for path, value in filters.metadata]
    for each in filters.comparisons:
        several = each.operator in ("in", "eq")
        value = list(each.values) if several else each.values[0]
        conditions.append((each.path, "in" if several else each.operator, value))
    for path, operator, value in conditions:
        bounds = found.get(path, {})
        if not isinstance(bounds, dict) or operator in bounds or (operator is None and bounds):
            raise SettingsError(f"a service takes one condition of a kind on metadata {path!r}; leave one out")
        found[path] = value if operator is None else {**bounds, operator: value}
    return found
