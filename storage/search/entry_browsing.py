"""Lists of knowledge entries for people: narrowed by words, kind, audience and standing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from parquetry.storage.database import Connection, rows, tuples
from parquetry.storage.search.filters import Filters, seen_by

Standing = Literal["live", "contradicted", "retired"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
"""live: it holds, contradicted ones included; contradicted: another one that holds says the opposite; retired: replaced
or taken back"""
_RELATIONS: Mapping[Standing, str] = {
    "live": "entries",
    "contradicted": "(SELECT * FROM entries WHERE len(contradicts) > 0 AND contradicts <> [''])",
    "retired": """(SELECT *, NULL::TIMESTAMPTZ AS valid_until FROM (
        SELECT * FROM entry_history
        QUALIFY row_number() OVER (PARTITION BY namespace, entry_id ORDER BY sequence DESC) = 1
    ) WHERE NOT live)""",
}
_COLUMNS = (
    "entry_id, namespace, kind, text, visibility, org_id, user_id, tags, confidence, valid_from, valid_until, "
    "sessions, contradicts, last_said, created_at"
)


@dataclass(frozen=True, slots=True)
class EntryBrowsing:
    """The entries that a list shows."""

    filters: Filters
    """the caller, the namespaces, and nothing else"""
    contains: str | None = None
    """part of the text, in any case"""
    kind: str | None = None
    visibility: str | None = None
    standing: Standing = "live"

    @property
    def needs_history(self) -> bool:
        """True if the list is of entries that no index holds."""
        return self.standing == "retired"


def browse_entries(
    connection: Connection, asked: EntryBrowsing, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return a page of entries, the most recently stated first, and the number of all that match.

    Args:
        connection: connection with the view `entries`, or `entry_history` if the list needs history.
        asked: the entries.
        limit: maximum number of entries.
        offset: number of entries before the page.
    """
    where, values = _condition(asked)
    relation = _RELATIONS[asked.standing]
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM {relation} WHERE {where} ORDER BY last_said DESC NULLS LAST, entry_id, namespace "
        f"LIMIT {limit:d} OFFSET {offset:d}",
        values,
    )
    ((total,),) = tuples(connection, f"SELECT count(*) FROM {relation} WHERE {where}", values)
    return found, int(total)


def _condition(asked: EntryBrowsing) -> tuple[str, list[Any]]:
    values: list[Any] = []
    parts = ["true"]

    def bind(value: Any) -> str:
        values.append(value)
        return f"${len(values)}"

    caller, namespaces = asked.filters.caller, asked.filters.namespaces
    if caller is not None:
        parts.append(seen_by(bind(caller.org_id or None), bind(caller.user_id or None)))
    if namespaces:
        parts.append(f"list_contains({bind(list(namespaces))}, namespace)")
    if asked.contains is not None:
        parts.append(f"contains(lower(text), lower({bind(asked.contains)}))")
    if asked.kind is not None:
        parts.append(f"kind = {bind(asked.kind)}")
    if asked.visibility is not None:
        parts.append(f"visibility = {bind(asked.visibility)}")
    return " AND ".join(parts), values
