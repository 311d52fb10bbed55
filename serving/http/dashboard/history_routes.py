"""The versions of a document, and the difference of two of them."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.callers import PublishedParts, ReadCaller
from parquetry.serving.http.dashboard.html import page
from parquetry.serving.http.dashboard.paths import DOCUMENTS
from parquetry.serving.service import documents as shown
from parquetry.serving.web.documents import item_of
from parquetry.serving.web.history import MOST_CHARACTERS, comparison_of, shown_versions
from parquetry.serving.web.text_diff import diff
from parquetry.storage.search.document_history import MOST_VERSIONS, text_of_revision, versions_of
from parquetry.storage.search.filters import Filters

router = APIRouter(include_in_schema=False)
Number = Annotated[int | None, Query(ge=1, le=MOST_VERSIONS)]


@router.get(f"{DOCUMENTS}/{{document_id}}/history")
def show_history(
    request: Request,
    document_id: Annotated[str, Path(max_length=255)],
    caller: ReadCaller,
    parts: PublishedParts,
    old: Number = None,
    new: Number = None,
) -> Response:
    """Show the versions of a document that the caller may see, and what differs between two of them."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id)
        with closing(reader.tables.cursor()) as session:
            versions = shown_versions(
                versions_of(session, filters_for(caller, row["namespace"], Filters()), document_id)
            )
            chosen = comparison_of(versions, old, new)
            texts = None
            if chosen is not None:
                texts = [text_of_revision(session, each.revision, MOST_CHARACTERS) for each in (chosen.old, chosen.new)]
    difference = None if texts is None or None in texts else diff(texts[0] or "", texts[1] or "")
    return page(
        request,
        "history.html",
        document=item_of(row),
        versions=versions,
        chosen=chosen,
        lost=texts is not None and None in texts,
        difference=difference,
        most=MOST_VERSIONS,
    )
