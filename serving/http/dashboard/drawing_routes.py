"""Pages of PDFs and pictures, as images that a page shows."""

from __future__ import annotations

from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from parquetry.serving.http.callers import PublishedParts, ReadCaller
from parquetry.serving.http.dashboard.html import HEADERS
from parquetry.serving.http.dashboard.paths import DOCUMENTS
from parquetry.serving.service import documents as shown
from parquetry.serving.service.awaiting import drawing, in_thread
from parquetry.serving.service.document_pages import chunk_on_pages
from parquetry.serving.service.drawings import NotDrawn, can_be_drawn, draw

router = APIRouter(include_in_schema=False)
_LARGEST_PAGE = 100_000


@router.get(f"{DOCUMENTS}/{{document_id}}/pages/{{number}}")
async def show_page(
    document_id: Annotated[str, Path(max_length=255)],
    number: Annotated[int, Path(ge=1, le=_LARGEST_PAGE)],
    caller: ReadCaller,
    parts: PublishedParts,
    chunk: Annotated[int | None, Query(ge=0, le=2**31)] = None,
) -> Response:
    """Show a page of a PDF with its part of a chunk outlined, or a picture; say in its place why it cannot be shown."""

    def found() -> tuple[dict[str, Any], str]:
        with parts.follower.reader() as reader:
            row = shown.document(reader, caller, document_id)
            passage = "" if chunk is None else chunk_on_pages(reader, row, chunk).get(number, "")
        return row, passage

    row, passage = await in_thread(found)
    if not can_be_drawn(parts.settings, row):
        return _told("there is no file of it to be shown")
    try:
        picture: bytes = await drawing(draw, parts, row, number, passage)
    except NotDrawn as error:
        return _told(error.reason)
    return Response(picture, media_type="image/webp", headers=dict(HEADERS))


def _told(reason: str) -> Response:
    text = escape(f"This page cannot be shown: {reason}.")
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 120" width="600" height="120">'
        '<rect width="600" height="120" fill="#f3f1ee"/>'
        '<text x="300" y="66" font-family="sans-serif" font-size="16" fill="#655e57" text-anchor="middle">'
        f"{text}</text></svg>"
    )
    return Response(svg, 404, dict(HEADERS), "image/svg+xml")
