"""Pages of a document on which a chunk stands, each with its part of the chunk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from parquetry.serving.search.service import Reader
from parquetry.serving.service.documents import Row
from parquetry.storage.database import rows, tuples

PageSpan = tuple[int, int, int]
"""start and end of a page in the text of its document, and its 1-based number"""


def chunk_on_pages(reader: Reader, row: Row, number: int) -> dict[int, str]:
    """Return the parts of a chunk's text by the 1-based numbers of the pages that they stand on, in order.

    Args:
        reader: reader of the newest version.
        row: the document, which the caller may see.
        number: 0-based number of the chunk.

    Returns:
        The parts; empty if there is no such chunk, or its document has no pages.
    """
    with closing(reader.index.session()) as session:
        found = rows(
            session,
            """SELECT revision, page, start, "end", text FROM parts.every_chunk
            WHERE document_id = $1 AND namespace = $2 AND chunk_index = $3""",
            [row["document_id"], row["namespace"], number],
        )
    if not found or found[0]["page"] is None:
        return {}
    chunk = found[0]
    whole = {int(chunk["page"]): str(chunk["text"])}
    if len(chunk["text"]) != chunk["end"] - chunk["start"]:
        # It was imported with a text of its own.
        return whole
    return divided(chunk["text"], chunk["start"], _page_spans(reader, chunk["revision"])) or whole


def divided(text: str, start: int, pages: Iterable[PageSpan]) -> dict[int, str]:
    """Return the parts of a chunk's text by page; pages on which none of its words stand are left out. Pure.

    Args:
        text: text of the chunk.
        start: its place in the text of its document.
        pages: the pages of the document, in order.
    """
    parts = ((number, text[max(0, first - start) : max(0, end - start)]) for first, end, number in pages)
    return {number: part for number, part in parts if part.strip()}


def _page_spans(reader: Reader, revision: int) -> Sequence[PageSpan]:
    with closing(reader.tables.cursor()) as session:
        found = tuples(session, "SELECT structure->'$.parts' FROM all_texts WHERE revision = $1 LIMIT 1", [revision])
    parts: list[list[Any]] = json.loads(found[0][0]) if found else []
    return [(start, end, number) for start, end, kind, number, *_ in parts if kind == "page"]
