"""Which documents a name typed by a person means."""

from __future__ import annotations

from fnmatch import fnmatchcase

from knowledge.model import DocumentRow


def is_named(row: DocumentRow, name: str) -> bool:
    """Whether a name means a document.

    Args:
        row: of the document.
        name: id, uri, path or filename, or a glob over paths or filenames (in which `*` passes over `/`).
    """
    exact = name in (row.document_id, row.uri, row.path, row.filename)
    return exact or fnmatchcase(row.path, name) or fnmatchcase(row.filename, name)
