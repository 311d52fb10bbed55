"""Documents as resources: a list in pages, and the text of each."""

from __future__ import annotations

from urllib.parse import quote, unquote

from mcp_types import ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from parquetry.printing import plain_text, visible
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.mcp.visit import Visit
from parquetry.serving.search.pages import read_page
from parquetry.serving.service import documents as shown
from parquetry.storage.search.filters import Filters

SCHEME = "parquetry://documents/"
PAGE = 200
"""documents of a page"""
TEXT_TYPE = "text/plain"
"""media type of extracted text"""
TEMPLATE = ResourceTemplate(
    name="document",
    title="Text of a document",
    uri_template=SCHEME + "{id}",
    description="Text of the document with an id, as search_knowledge and list_documents show it.",
    mime_type=TEXT_TYPE,
)


def list_resources(visit: Visit, cursor: str | None) -> ListResourcesResult:
    """Return a page of the documents that the caller sees; none to a caller who may not read documents."""
    if not visit.principal.may("read"):
        return ListResourcesResult(resources=[])
    filters = filters_for(visit.principal, visit.namespace(None), Filters())
    with visit.follower.reader() as reader:
        page = read_page(visit.settings, reader, filters, limit=PAGE, token=cursor)
    resources = [
        Resource(
            name=visible(row["path"]),
            title=visible(row["title"] or row["filename"] or row["path"]),
            uri=SCHEME + quote(row["document_id"], safe=""),
            description=visible(row["uri"]),
            mime_type=TEXT_TYPE,
        )
        for row in page.documents
    ]
    return ListResourcesResult(resources=resources, next_cursor=page.next)


def read_resource(visit: Visit, uri: str) -> ReadResourceResult:
    """Return the text of a document.

    Raises:
        AccessRefused: it does not exist for the caller, who may also lack the right to read documents.
    """
    visit.principal.demand("read")
    if not uri.startswith(SCHEME):
        raise shown.no_such_document(uri)
    with visit.follower.reader() as reader:
        row = shown.document(reader, visit.principal, unquote(uri.removeprefix(SCHEME)))
        text = shown.text_of(reader, row)
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=TEXT_TYPE, text=plain_text(text))])
