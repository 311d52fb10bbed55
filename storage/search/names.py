"""The names that a caller can filter by: namespaces, sources and tags of what the caller may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from parquetry.storage.database import Connection, sql_string, tuples
from parquetry.storage.search.filters import Caller, seen_by

Kind = Literal["namespace", "source", "tag"]
_VALUES: Mapping[Kind, str] = {"namespace": "namespace", "source": "source", "tag": "unnest(tags)"}

ENTRIES_AND_DECISIONS = """(SELECT namespace, visibility, org_id, user_id FROM published
UNION ALL SELECT namespace, 'public', NULL, NULL FROM decisions)"""
"""relation of what has decisions: they outlive the entries that they were about; `decisions` shows a caller's alone"""


def known_names(connection: Connection, kind: Kind, caller: Caller | None, relation: str = "published") -> set[str]:
    """The namespaces, sources or tags of what a caller may see.

    Args:
        connection: with the views of a corpus, or of its index.
        kind: of name.
        caller: who asks; None for the operator, who sees everything.
        relation: view that has the names, and says who may see each of its rows.
    """
    seen = "true"
    if caller is not None:
        seen = seen_by(*(sql_string(name) if name else "NULL" for name in (caller.org_id, caller.user_id)))
    found = tuples(connection, f"SELECT DISTINCT {_VALUES[kind]} AS name FROM {relation} WHERE {seen}")
    return {name for (name,) in found if name}
