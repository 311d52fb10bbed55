"""Retrieval in the gateway's form: requests to searches, hits to chunks with what was asked for beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http import gateway_models as forms
from parquetry.serving.http.problems import Problem
from parquetry.serving.search.absences import why_not
from parquetry.serving.search.candidates import candidates_of
from parquetry.serving.search.citations import cite
from parquetry.serving.search.merging import distinct_places
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.search.summaries import READ, summary
from parquetry.serving.service import documents as shown
from parquetry.serving.service.request_filters import filters_of
from parquetry.serving.service.resources import Resources
from parquetry.settings.sections import Settings
from parquetry.storage.database import rows
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Hit

MOST_LOADED = 32 * 1024 * 1024
"""characters of all texts of documents in one answer"""


def retrieve_chunks(
    parts: Resources, caller: Principal, namespace: str, asked: forms.Retrieve
) -> tuple[dict[str, Any], list[Hit]]:
    """Answer a request in the gateway's form.

    Returns:
        The answer, and all hits in it.

    Raises:
        SettingsError: a filter or the vector is not valid, or no reranker is configured.
    """
    filters = filters_for(caller, namespace, filters_of(asked.filters, asked.type, parts.settings.metadata_denylists))
    requests = [search_request(asked, query, filters) for query in asked.queries or [asked.query or ""]]
    with parts.follower.reader() as reader:
        responses = list(reader.search_all(requests))
        texts = _texts(reader, asked, [hit for response in responses for hit in response.hits])
        lists = [
            chunks_of_hits(reader, parts.settings, asked, response.request.query, response.hits, texts)
            for response in responses
        ]
        version = reader.snapshot.version
        explanations = [_explanation(reader, caller, request, asked) for request in requests] if asked.explain else []
    found = [response.hits for response in responses]
    answer: dict[str, Any] = {"chunks": _merged(found, lists, asked.level), "version": version}
    if asked.explain:
        answer["explanation"] = explanations if asked.queries is not None else explanations[0]
    if asked.queries is not None:
        answer["results"] = lists
    return answer, [hit for response in responses for hit in response.hits]


def _explanation(reader: Reader, caller: Principal, request: SearchRequest, asked: forms.Retrieve) -> dict[str, Any]:
    """Return all candidates of a search, or why the one document is not among its results."""
    wanted = asked.explain
    if isinstance(wanted, bool) or wanted.document_id is None:
        return candidates_of(reader, request, with_vectors=not isinstance(wanted, bool) and wanted.vector).as_json()
    return why_not(reader, request, wanted.document_id, sees=caller.sees).as_json()


def _merged(
    found: Sequence[Sequence[Hit]], lists: Sequence[Sequence[dict[str, Any]]], level: str
) -> list[dict[str, Any]]:
    """Return the chunks of several answers once each, with their best score, best first.

    Args:
        found: hits of each query.
        lists: the same, as chunks.
        level: `chunk`, or `document` for one chunk of each document.
    """
    if len(lists) == 1:
        return list(lists[0])
    return [lists[query][rank] for query, rank in distinct_places(found, documents=level == "document")]


def search_request(asked: forms.Retrieve, query: str, filters: Filters) -> SearchRequest:
    """Return the search for one query of a request."""
    context = asked.context
    if context is not None and not isinstance(context, str):
        context = "\n".join(turn.content for turn in context)
    return SearchRequest(
        query,
        mode="vector" if asked.vector is not None and asked.query is None else asked.mode,
        k=asked.top_k,
        filters=filters,
        level=asked.level,
        look=Reranking(rerank=asked.rerank),
        min_relevance=asked.min_score,
        vector=None if asked.vector is None else tuple(asked.vector),
        context=context or None,
    )


def _texts(reader: Reader, asked: forms.Retrieve, hits: Sequence[Hit]) -> Mapping[str, str]:
    """Return the texts of the documents of hits, as far as they are asked for.

    Raises:
        Problem: an answer with all of them would be too large.
    """
    documents = [hit.row["document_id"] for hit in hits]
    if asked.load is None:
        return {}
    if asked.load == "summary":
        return reader.texts(documents, READ + 1)
    lengths = reader.text_lengths(documents)
    # A document that is found several times is sent as often.
    length = sum(lengths.get(each, 0) for each in documents)
    if length > MOST_LOADED:
        raise Problem(
            422,
            "answer-too-large",
            f"the texts of these results have {length:,} characters, and {MOST_LOADED:,} fit into an answer; ask for "
            'fewer results, for level "document", or for load "summary" and the documents that matter one by one',
        )
    return reader.texts(documents)


def chunks_of_hits(
    reader: Reader,
    settings: Settings,
    asked: forms.Retrieve,
    query: str,
    hits: Sequence[Hit],
    texts: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return hits as chunks, with citations, fields and texts if they are asked for."""
    citations = citations_of(settings, query, hits) if asked.include_citations else [None] * len(hits)
    documents = _documents(reader, hits) if asked.fields == "all" else {}
    chunks = []
    for hit, citation in zip(hits, citations, strict=True):
        row = hit.row
        metadata = shown.shown_metadata(settings, row)
        chunk: dict[str, Any] = {
            "chunk_id": row["chunk_id"],
            "document_id": row["document_id"],
            "text": row["text"],
            "score": round(hit.relevance or 0.0, 6),
            "metadata": {"source": row["source"], **metadata},
            "citations": None if citation is None else [citation],
        }
        if asked.type != "documents":
            chunk["type"] = "entry" if shown.is_entry(row) else "document"
        if asked.explain:
            chunk["scores"] = {side: hit.scores.get(side) for side in ("vector", "text", "rerank")}
        if asked.fields == "all":
            chunk["fields"] = _fields(row, documents[row["document_id"]])
        # An entry is a text of its own.
        text = row["text"] if shown.is_entry(row) else texts.get(row["document_id"], "")
        if asked.load == "summary":
            chunk["summary"] = summary(text)
        elif asked.load == "full":
            chunk["content"] = text
        chunks.append(chunk)
    return chunks


def citations_of(settings: Settings, query: str, hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Return the place of each hit and the sentence that answers best, in the gateway's form."""
    cited = cite(query, hits, settings.search.language)
    return [
        {
            "source": hit.row["filename"] or citation.source,
            "uri": citation.uri,
            "page": None if citation.page is None else str(citation.page),
            "span": list(citation.span),
            "snippet": citation.snippet,
            "metadata": shown.shown_metadata(settings, hit.row),
        }
        for hit, citation in zip(hits, cited.citations, strict=True)
    ]


def _documents(reader: Reader, hits: Sequence[Hit]) -> Mapping[str, Mapping[str, Any]]:
    ids = sorted({hit.row["document_id"] for hit in hits})
    with closing(reader.index.session()) as session:
        found = rows(
            session,
            """SELECT document_id, size, created_at, uploaded_by, visibility, chunks FROM published
            WHERE document_id IN (SELECT unnest($1::VARCHAR[]))""",
            [ids],
        )
    return {row["document_id"]: row for row in found}


def _fields(row: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "filename": row["filename"],
        "path": row["path"],
        "uri": row["uri"],
        "title": row["title"],
        "source": row["source"],
        "size": document["size"],
        "uploaded_at": document["created_at"].isoformat(),
        "uploaded_by": document["uploaded_by"],
        "visibility": document["visibility"],
        "tags": list(row["tags"] or ()),
        "chunk_index": row["chunk_index"],
        "total_chunks": document["chunks"],
        "page": row["page"],
        "headings": list(row["headings"] or ()),
        "span": [row["start"], row["end"]],
    }
