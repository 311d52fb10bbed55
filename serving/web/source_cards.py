"""Sources of an answer as cards: the passage, its place, and the way to it in its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.search.service import Reader
from parquetry.serving.web.conversation import SourcePlace
from parquetry.serving.web.marking import extract, headings_of
from parquetry.storage.database import rows
from parquetry.storage.search.document_list import find_document
from parquetry.storage.search.filters import Filters


@dataclass(frozen=True, slots=True)
class SourceCard:
    """A source of an answer."""

    number: int
    document_id: str
    namespace: str
    chunk_id: str | None
    chunk_index: int | None
    """0-based; None for a document that the model read as a whole"""
    title: str
    filename: str
    place: str
    headings: str
    lines: str
    """the beginning of the passage; empty for a whole document"""


def cards_of(reader: Reader, caller: Principal, places: Sequence[SourcePlace], first: int) -> list[SourceCard]:
    """Return the cards of sources, without those that the caller does not see.

    Args:
        reader: reader of the newest version.
        caller: whom they are shown to.
        places: the sources, in the order of their numbers.
        first: number of the first one.
    """
    filters = filters_for(caller, None, Filters())
    found: list[SourceCard] = []
    with closing(reader.index.session()) as session:
        documents: dict[str, Mapping[str, Any] | None] = {}
        for number, (document_id, chunk_index) in enumerate(places, first):
            if document_id not in documents:
                documents[document_id] = find_document(session, filters, document_id)
            document = documents[document_id]
            if document is None:
                continue
            chunk = None
            if chunk_index is not None:
                chunk = next(
                    iter(
                        rows(
                            session,
                            """SELECT chunk_id, kind, page, headings, text FROM parts.every_chunk
                            WHERE document_id = $1 AND namespace = $2 AND chunk_index = $3""",
                            [document_id, document["namespace"], chunk_index],
                        )
                    ),
                    None,
                )
                if chunk is None:
                    continue
            found.append(_card(number, document, chunk, chunk_index))
    return found


def _card(
    number: int, document: Mapping[str, Any], chunk: Mapping[str, Any] | None, chunk_index: int | None
) -> SourceCard:
    at_page = chunk is not None and chunk["page"] is not None and chunk["kind"] != "document"
    return SourceCard(
        number=number,
        document_id=document["document_id"],
        namespace=document["namespace"],
        chunk_id=None if chunk is None else chunk["chunk_id"],
        chunk_index=chunk_index,
        title=document["title"] or document["filename"] or "Untitled",
        filename=document["filename"] or "",
        place=f"{chunk['kind']} {chunk['page']}" if chunk is not None and at_page else "",
        headings="" if chunk is None else headings_of(list(chunk["headings"] or ())),
        lines="" if chunk is None else extract(str(chunk["text"]), (0, 0)),
    )
