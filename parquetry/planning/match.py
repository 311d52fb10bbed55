"""Matching of documents by a name that a person typed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from parquetry.model import DocumentRow
from parquetry.sources.names import typed


def named(rows: Iterable[DocumentRow], name: str) -> list[DocumentRow]:
    """Return the rows of the documents that a name matches.

    Args:
        rows: rows to search.
        name: id, uri, path or filename, or a glob over paths or filenames (in which `*` also matches `/`). If it
            matches no document, it is tried as the path of a file in a folder `box.zip!`, in the spelling on disk.
    """
    rows = list(rows)
    return [row for row in rows if is_named(row, name)] or [
        row for row in rows if is_named(replace(row, path=typed(row.path)), name)
    ]


def is_named(row: DocumentRow, name: str) -> bool:
    """Return True if a name is the document's id, uri, path or filename, or a glob that matches path or filename."""
    exact = name in (row.document_id, row.uri, row.path, row.filename)
    return exact or fnmatchcase(row.path, name) or fnmatchcase(row.filename, name)
