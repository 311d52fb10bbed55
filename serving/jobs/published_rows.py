"""Published documents that jobs are about; imports no pipeline."""

from __future__ import annotations

from collections.abc import Iterable

from parquetry import ids
from parquetry.model import DocumentRow
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread

Key = tuple[str, str]
"""namespace and document id"""
Place = tuple[str, str]
"""namespace and path of an upload"""


def key_of(place: Place) -> Key:
    """Return the document that an upload becomes."""
    namespace, path = place
    return namespace, ids.document_id(namespace, UPLOADS, path)


def published_rows(root: str, keys: Iterable[Key]) -> dict[Key, DocumentRow]:
    """Return the current rows of documents of the corpus at a root."""
    wanted = set(keys)
    if not wanted or not Lake.exists(root):
        return {}
    namespaces = {namespace for namespace, _ in wanted}
    found = reread(lambda: CurrentRows(Lake(root).snapshot(), namespaces).named(document for _, document in wanted))
    return {key: row for row in found if (key := (row.namespace, row.document_id)) in wanted}


def published_uploads(root: str, namespace: str | None) -> list[DocumentRow]:
    """Return the current rows of uploads: of one namespace, or of all."""
    if not Lake.exists(root):
        return []
    namespaces = None if namespace is None else [namespace]

    def found() -> list[DocumentRow]:
        return [row for row in CurrentRows(Lake(root).snapshot(), namespaces).each() if row.source == UPLOADS]

    return reread(found)
