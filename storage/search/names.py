"""Names for filters: namespaces, sources and tags that a caller may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from parquetry.storage.database import Connection, sql_string, tuples
from parquetry.storage.search.filters import Caller, seen_by

Kind = Literal["namespace", "source", "tag"]
_VALUES: Mapping[Kind, str] = {"namespace": "namespace", "source": "source", "tag": "unnest(tags)"}

ENTRIES_AND_DECISIONS = """(SELECT namespace, visibility, org_id, user_id FROM published
UNION ALL SELECT namespace, 'public', NULL, NULL FROM decisions)"""
"""relation of namespaces with decisions, which outlive their entries; `decisions` shows a caller only visible ones"""


def known_names(connection: Connection, kind: Kind, caller: Caller | None, relation: str = "published") -> set[str]:
    """Return the namespaces, sources or tags of the data that a caller may see.

    Args:
        connection: connection with the views of a corpus or of its index.
        kind: kind of name.
        caller: the caller; None for the operator, who sees everything.
        relation: view with the names and with the visibility of each row.
    """
    seen = "true"
    if caller is not None:
        seen = seen_by(*(sql_string(name) if name else "NULL" for name in (caller.org_id, caller.user_id)))
    found = tuples(connection, f"SELECT DISTINCT {_VALUES[kind]} AS name FROM {relation} WHERE {seen}")
    return {name for (name,) in found if name}
