"""Documents as the service's dialects show them: one at a time, with text and chunks, for callers who may see them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from parquetry.errors import SettingsError
from parquetry.model import ENTRY_TYPE
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.database import rows
from parquetry.storage.search.document_list import (
    DocumentTotals,
    count_documents,
    documents_at,
    find_document,
    visible_namespaces,
)
from parquetry.storage.search.filters import Filters

Row = Mapping[str, Any]
_LONGEST = 80
"""characters of a name that a message repeats"""
_MOST_NAMED = 5
"""ids that a message names"""


def counts(reader: Reader, principal: Principal, namespace: str) -> DocumentTotals:
    """Count the documents of a namespace, and their chunks, that a principal sees."""
    with closing(reader.index.session()) as session:
        return count_documents(session, filters_for(principal, namespace, Filters()))


def namespaces(reader: Reader, principal: Principal) -> list[str]:
    """Return the namespaces in which a principal sees a document or an entry."""
    filters = filters_for(principal, None, Filters(what="both"))
    with closing(reader.index.session()) as session:
        return visible_namespaces(session, filters)


def document(reader: Reader, principal: Principal, document_id: str, namespace: str | None = None) -> dict[str, Any]:
    """Return the row of a document.

    Args:
        reader: reader of the newest version.
        principal: maker of the request.
        document_id: id of the document.
        namespace: the namespace that it has to be in; None for any.

    Raises:
        NotVisible: it does not exist for the principal.
    """
    filters = filters_for(principal, namespace, Filters())
    with closing(reader.index.session()) as session:
        found = find_document(session, filters, document_id)
    if found is None:
        raise no_such_document(document_id)
    return found


def document_at(reader: Reader, principal: Principal, path: str, namespace: str | None = None) -> dict[str, Any]:
    """Return the row of the one document with a path within its source, or else with this file name.

    Args:
        reader: reader of the newest version.
        principal: maker of the request.
        path: path or file name.
        namespace: the namespace that it has to be in; None for any.

    Raises:
        NotVisible: it does not exist for the principal.
        SettingsError: there are several; names their ids.
    """
    filters = filters_for(principal, namespace, Filters())
    with closing(reader.index.session()) as session:
        found = documents_at(session, filters, path, _MOST_NAMED + 1)
    if not found:
        raise no_such_document(path)
    if len(found) > 1:
        ids = ", ".join(row["document_id"] for row in found[:_MOST_NAMED])
        more = ", and others" if len(found) > _MOST_NAMED else ""
        raise SettingsError(f"several documents are named {path[:_LONGEST]!r}; give the id of one: {ids}{more}")
    return found[0]


def no_such_document(document_id: str) -> NotVisible:
    """Return the refusal for a document that does not exist, or not for the caller: one text for both."""
    return NotVisible("no-such-document", f"no document {document_id[:_LONGEST]!r}")


def text_of(reader: Reader, row: Row) -> str:
    """Return the stored text of a document; empty for one that has none."""
    return reader.texts([row["document_id"]]).get(row["document_id"], "")


def chunks_of(reader: Reader, row: Row) -> list[dict[str, Any]]:
    """Return the chunks of a document in order, with `chunk_id`, `chunk_index`, `text`, `start`, `end` and `page`."""
    with closing(reader.index.session()) as session:
        return rows(
            session,
            """SELECT chunk_id, chunk_index, text, start, "end", page, headings, tokens FROM parts.every_chunk
            WHERE document_id = $1 AND namespace = $2 ORDER BY chunk_index""",
            [row["document_id"], row["namespace"]],
        )


def shown_metadata(settings: Settings, row: Row) -> dict[str, Any]:
    """Return the metadata of a document or entry that may be shown."""
    denied: Collection[str] = settings.metadata_denylists.knowledge
    if is_entry(row):
        denied = settings.metadata_denylists.entries
    found: dict[str, Any] = json.loads(row["metadata"] or "{}")
    return {key: value for key, value in found.items() if key not in denied}


def is_entry(row: Row) -> bool:
    """True for the row of a knowledge entry."""
    return bool(row["media_type"] == ENTRY_TYPE)


def origin_of(row: Row) -> str:
    """Return where a document comes from: `upload`, `url`, `youtube`, or the name of its source."""
    if row["source"] != UPLOADS:
        return str(row["source"])
    if json.loads(row["metadata"] or "{}").get("source") == "youtube":
        return "youtube"
    return "url" if url_of(row) else "upload"


def url_of(row: Row) -> str | None:
    """Return the address that an imported page or video was fetched from; None for other documents."""
    uri = str(row["uri"])
    return uri if row["source"] == UPLOADS and uri.startswith(("http://", "https://")) else None
