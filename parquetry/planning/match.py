"""Which documents a name typed by a person means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from parquetry.model import DocumentRow
from parquetry.sources.names import typed


def named(rows: Iterable[DocumentRow], name: str) -> list[DocumentRow]:
    """The documents that a name means, of some.

    Args:
        rows: of the documents.
        name: id, uri, path or filename, or a glob over paths or filenames (in which `*` passes over `/`). A name that
            means no document so may be the path of a file in a folder `box.zip!`, as that is written on disk.
    """
    rows = list(rows)
    return [row for row in rows if is_named(row, name)] or [
        row for row in rows if is_named(replace(row, path=typed(row.path)), name)
    ]


def is_named(row: DocumentRow, name: str) -> bool:
    """Whether a name means a document by its id, uri, path or filename, or as a glob over path or filename."""
    exact = name in (row.document_id, row.uri, row.path, row.filename)
    return exact or fnmatchcase(row.path, name) or fnmatchcase(row.filename, name)
