"""Lookup of documents by the names that people type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parquetry.errors import SettingsError
from parquetry.plural import counted
from parquetry.storage.database import Connection, rows
from parquetry.storage.search.filters import TYPED_PATH

_CHOICES = 5
"""maximum number of documents listed for an ambiguous name"""


def listed(
    connection: Connection, namespace: str | None = None, status: str | None = None, names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the current documents by source and path, one dictionary of columns each.

    Args:
        connection: connection with the view `documents`, limited to what the caller may see.
        namespace: only documents of this namespace.
        status: only documents with this status.
        names: only documents that match one of these names, as in `named`; empty for all.

    Raises:
        SettingsError: a name matches no document.
    """
    wanted: set[str] | None = None
    if names:
        meant = {name: named(connection, name) for name in names}
        for name, those in meant.items():
            if not those:
                raise _unknown(name)
        wanted = {row["document_id"] for each in meant.values() for row in each}
    found = rows(
        connection,
        """SELECT * FROM documents WHERE ($1 IS NULL OR namespace = $1) AND ($2 IS NULL OR status = $2)
        ORDER BY namespace, source, path""",
        [namespace, status],
    )
    return found if wanted is None else [row for row in found if row["document_id"] in wanted]


def named(connection: Connection, name: str) -> list[dict[str, Any]]:
    """Return the documents that match a typed name; the first form with a match decides.

    Args:
        connection: connection with the view `documents`, limited to what the caller may see.
        name: id, uri, path, `source/path`, filename, id prefix (6 characters or more), or a glob over
            paths and filenames, in which `*` also matches `/`.
    """
    return rows(
        connection,
        f"""SELECT * EXCLUDE (meaning) FROM (
            SELECT *, CASE WHEN document_id = $1 THEN 0 WHEN uri = $1 THEN 1 WHEN path = $1 THEN 2
                WHEN source || '/' || path = $1 THEN 3 WHEN filename = $1 THEN 4
                WHEN length($1) >= 6 AND starts_with(document_id, $1) THEN 5
                WHEN path GLOB $1 OR filename GLOB $1 THEN 6
                WHEN {TYPED_PATH} GLOB $1 OR $1 IN ({TYPED_PATH}, source || '/' || {TYPED_PATH}) THEN 7 END AS meaning
            FROM documents
        ) WHERE meaning IS NOT NULL QUALIFY meaning = min(meaning) OVER ()
        ORDER BY namespace, source, path, document_id""",
        [name],
    )


def the_one(connection: Connection, name: str) -> dict[str, Any]:
    """Return the one document that a name matches.

    Raises:
        SettingsError: no document or several documents match.
    """
    found = named(connection, name)
    if not found:
        raise _unknown(name)
    if len(found) > 1:
        of_one_uri = len({row["uri"] for row in found}) == 1
        shown = ", ".join(row["document_id" if of_one_uri else "uri"] for row in found[:_CHOICES])
        more = ", ..." if len(found) > _CHOICES else ""
        better = "id" if of_one_uri else "uri"
        raise SettingsError(f"{name!r} means {counted(len(found), 'document')} ({shown}{more}); give the {better}")
    return found[0]


def _unknown(name: str) -> SettingsError:
    return SettingsError(f"no document {name!r} in this corpus; `parquetry documents` lists them")
