"""The tools that search: `search_knowledge` for any client, `search` in ChatGPT's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parquetry.plural import counted
from parquetry.printing import plain_text
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.mcp import arguments as forms
from parquetry.serving.mcp.outcome import ToolOutcome, as_text_too
from parquetry.serving.mcp.visit import Visit
from parquetry.serving.mcp.wording import DATA, named, quoted
from parquetry.serving.search.citations import cite, place
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.service.documents import is_entry, shown_metadata
from parquetry.serving.service.request_filters import RequestFilters, filters_of
from parquetry.settings.sections import Settings
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Hit

NEXT = "parquetry/next_citation"
"""key of the next citation number in the metadata of a result"""
NOTHING = "Nothing in the knowledge base matches this. Try other words, or fewer filters."
_RESULTS = 10
"""results of `search`"""


def search_knowledge(visit: Visit, asked: forms.SearchKnowledge) -> ToolOutcome:
    """Return passages that answer a question, numbered for citations."""
    namespace = visit.namespace(asked.namespace)
    record = visit.record("knowledge.retrieve", namespace)
    conditions = filters_of(asked.filters or RequestFilters(), asked.type, visit.settings.metadata_denylists)
    filters = filters_for(visit.principal, namespace, conditions)
    with visit.follower.reader() as reader:
        hits = reader.search(_request(visit.settings, asked.query, asked.top_k, filters)).hits
        lines = _lines(reader, hits)
        version = reader.snapshot.version
    record.answered(hits, [asked.query])
    following = asked.first_citation + len(hits)
    sources = None
    if asked.include_sources:
        found = structured_hits(visit.settings, asked.query, hits, asked.first_citation)
        sources = {"results": found, "next_citation": following, "version": version}
    text = passages(hits, lines, asked.first_citation) if hits else NOTHING
    return ToolOutcome(text, sources, meta={NEXT: following})


def _request(settings: Settings, query: str, k: int, filters: Filters, **options: Any) -> SearchRequest:
    # With a reranker, the second stage is the operator's choice: a model cannot know what it costs.
    return SearchRequest(
        query, k=k, filters=filters, look=Reranking(rerank=settings.search.rerank is not None), **options
    )


def passages(hits: Sequence[Hit], lines: Sequence[str], first: int) -> str:
    """Return hits as numbered passages for a model.

    Args:
        hits: best first.
        lines: lines of each in its document.
        first: number of the first passage.
    """
    one = counted(len(hits), "passage")
    following = first + len(hits)
    told = [
        f"{one} from the knowledge base, best first. Lines that begin with > are quoted from documents. {DATA} "
        f"Cite a passage that you use by its number, as [{first}]."
    ]
    for number, (hit, where) in enumerate(zip(hits, lines, strict=True), first):
        told.append(f"[{number}] {_head(hit, where)}\n{quoted(hit.row['text'])}")
    told.append(
        f"The next citation number is {following}: call search_knowledge with first_citation={following} when you "
        "search again for the same answer."
    )
    return "\n\n".join(told)


def _head(hit: Hit, where: str) -> str:
    row = hit.row
    if is_entry(row):
        return named("knowledge entry", place(row), f"id {row['document_id']}")
    path = row["path"] if row["path"] != row["filename"] else None
    return named(place(row), path and f"path {path}", where, f"id {row['document_id']}")


def _lines(reader: Reader, hits: Sequence[Hit]) -> list[str]:
    """Return the lines of each hit in its document, as `read_document` counts them."""
    documents = {hit.row["document_id"] for hit in hits if not is_entry(hit.row)}
    texts = reader.texts(sorted(documents))
    return [_lines_of(texts.get(hit.row["document_id"], ""), hit.row) for hit in hits]


def _lines_of(text: str, row: Mapping[str, Any]) -> str:
    if not text:
        return ""
    first = plain_text(text[: row["start"]]).count("\n") + 1
    last = first + plain_text(text[row["start"] : row["end"]].rstrip()).count("\n")
    return f"line {first}" if first == last else f"lines {first}-{last}"


def structured_hits(settings: Settings, query: str, hits: Sequence[Hit], first: int) -> list[dict[str, Any]]:
    """Return the sources of passages.

    Args:
        settings: what may be shown, and the language of quotations.
        query: the question.
        hits: the passages, best first.
        first: number of the first.
    """
    citations = cite(query, hits, settings.search.language).citations
    return [
        {
            "n": number,
            "type": "entry" if is_entry(hit.row) else "document",
            "document_id": hit.row["document_id"],
            "chunk_id": hit.row["chunk_id"],
            "namespace": hit.row["namespace"],
            "source": hit.row["source"],
            "filename": hit.row["filename"],
            "path": hit.row["path"],
            "title": hit.row["title"],
            "uri": citation.uri,
            "page": citation.page,
            "headings": list(hit.row["headings"] or ()),
            "span": list(citation.span),
            "snippet": citation.snippet,
            "score": None if hit.relevance is None else round(hit.relevance, 6),
            "metadata": shown_metadata(settings, hit.row),
        }
        for number, (hit, citation) in enumerate(zip(hits, citations, strict=True), first)
    ]


def search(visit: Visit, asked: forms.Search) -> ToolOutcome:
    """Return documents in the form that ChatGPT expects: their ids, for `fetch`."""
    namespace = visit.namespace(None)
    record = visit.record("knowledge.retrieve", namespace)
    filters = filters_for(visit.principal, namespace, Filters())
    with visit.follower.reader() as reader:
        hits = reader.search(_request(visit.settings, asked.query, _RESULTS, filters, level="document")).hits
    record.answered(hits, [asked.query])
    return as_text_too({"results": [{"id": hit.row["document_id"], **title_and_url(hit.row)} for hit in hits]})


def title_and_url(row: Mapping[str, Any]) -> dict[str, str]:
    """Return title and address of a document, as ChatGPT shows them."""
    return {"title": row["title"] or row["filename"] or row["path"], "url": row["uri"]}
