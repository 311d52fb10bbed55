"""Answers: search results with the citations, passages and texts requested. Knows nothing of terminals or HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from parquetry.ranking.relevance_words import occurrences
from parquetry.serving.search.citations import Cited, cite
from parquetry.serving.search.passages import ChunkPosition, Passage, merge
from parquetry.serving.search.service import Reader, SearchResponse
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import tuples
from parquetry.storage.search.searcher import Hit


@dataclass(frozen=True, slots=True)
class Shown:
    """Optional parts of an answer, shown beside the results."""

    citations: bool = False
    """True to show markers, snippets and a bibliography"""
    context: int | None = None
    """number of chunks before and after each hit; None for no passages"""
    full: bool = False
    """True to show whole texts"""
    explain: bool = False
    """True to explain how each result was found"""


@dataclass(frozen=True, slots=True)
class Answer:
    """Search results together with the parts shown beside them."""

    response: SearchResponse
    shown: Shown
    settings: SearchSettings
    index: str
    """index used: `file`, or `memory` for a version other than the newest, indexed for this search only"""
    cited: Cited
    """empty unless citations are shown"""
    passages: tuple[Passage, ...]
    """empty unless context is shown"""
    texts: Mapping[str, str]
    """whole texts by document id, in the order of the documents' best hits; empty unless requested"""

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry search --json` prints: the response, plus a key for each part shown."""
        told, hits = self.response.as_json(), self.response.hits
        if self.response.request.level == "document":
            told["level"] = "document"
        if self.shown.citations:
            for result, citation in zip(told["results"], self.cited.citations, strict=True):
                result["citation"] = citation.as_json()
            told["bibliography"] = [reference.as_json() for reference in self.cited.bibliography]
        if self.shown.context is not None:
            rows = [hit.row for hit in hits]
            for number, passage in enumerate(self.passages):
                for rank in passage.stretch.hits:
                    told["results"][rank]["passage"] = number
            told["passages"] = [passage.as_json(rows) for passage in self.passages]
        if self.shown.full:
            rows_by_document = {hit.row["document_id"]: hit.row for hit in hits}
            told["documents"] = [
                {name: rows_by_document[document_id][name] for name in ("document_id", "uri", "filename", "title")}
                | {"text": text}
                for document_id, text in self.texts.items()
            ]
        if self.shown.explain:
            for result, hit in zip(told["results"], hits, strict=True):
                result["explanation"] = self.how_found(hit)
                result["evidence"] = {name: round(value, 6) for name, value in hit.evidence.items()}
            told["explanation"] = self.explanation
        return told

    @property
    def explanation(self) -> dict[str, Any]:
        """The explanation of the search as a whole; each result carries its own."""
        settings = self.settings
        fused = {"fusion": settings.fusion, "vector_weight": settings.vector_weight, "depth": settings.depth}
        if settings.fusion == "rrf":
            fused["rrf_k"] = settings.rrf_k
        recency = self.response.request.look.recency
        return {
            "version": self.response.version,
            "index": self.index,
            "cached": self.response.cached,
            **(fused if self.response.request.mode == "hybrid" else {}),
            **self.response.ranking.explanation,
            **({"half_life_days": recency.half_life} if recency else {}),
        }

    def how_found(self, hit: Hit) -> dict[str, Any]:
        """Return rank and score of a hit on each side, None where that side missed it; a reranker gives scores alone.

        The keyword side has the part of its score that the document's identity adds, and the words of the query that
        count more because they are in the headings.
        """
        sides: dict[str, Any] = {
            side: {"rank": hit.ranks.get(side), "score": round(hit.scores[side], 6)} if side in hit.scores else None
            for side in ("vector", "text", "rerank")
        }
        if sides["text"] is not None:
            sides["text"]["identity"] = round(hit.identity or 0.0, 6)
            asked = self.response.ranking.explanation["terms"]
            (found,) = occurrences([" ".join(hit.row["headings"] or ())], asked, self.settings.language)
            sides["text"]["headings"] = sorted(found.times)
        if "age" in hit.scores:
            sides["recency"] = {"days": round(hit.scores["age"], 3)}
        return sides


def answer(reader: Reader, response: SearchResponse, shown: Shown, settings: SearchSettings) -> Answer:
    """Read the parts to show beside search results.

    Args:
        reader: the reader that ran the search.
        response: the search's response.
        shown: the parts requested.
        settings: search settings.

    Raises:
        StorageError: the corpus cannot be read.
    """
    hits = response.hits
    return Answer(
        response=response,
        shown=shown,
        settings=settings,
        index="memory" if reader.index.lease is None else "file",
        cited=cite(response.request.query, hits if shown.citations else (), settings.language),
        passages=() if shown.context is None else read_passages(reader, hits, shown.context),
        texts=_texts(reader, hits) if shown.full else {},
    )


def read_passages(reader: Reader, hits: Sequence[Hit], context: int) -> tuple[Passage, ...]:
    """Read the hits with their neighbours in the document; chunks that touch or overlap form one passage.

    Args:
        reader: the reader that found the hits.
        hits: best first.
        context: number of chunks before and after each hit.

    Returns:
        Passages in the order of their best hits.
    """
    places = [
        ChunkPosition(row["document_id"], row["chunk_index"], row["start"], row["end"])
        for row in (hit.row for hit in hits)
    ]
    stretches = merge(places, _neighbours(reader, places), context)
    texts = _texts(reader, hits)
    return tuple(
        Passage(
            each,
            texts[each.document_id][each.start : each.end],
            tuple((places[rank].start, places[rank].end) for rank in each.hits),
        )
        for each in stretches
    )


def _neighbours(reader: Reader, places: Sequence[ChunkPosition]) -> list[ChunkPosition]:
    """Read all chunks of the documents of `places`."""
    with closing(reader.index.session()) as session:
        found = tuples(
            session,
            """SELECT document_id, chunk_index, start, "end" FROM parts.every_chunk
            WHERE document_id IN (SELECT unnest($1::VARCHAR[]))""",
            [sorted({each.document_id for each in places})],
        )
    return [ChunkPosition(*values) for values in found]


def _texts(reader: Reader, hits: Sequence[Hit]) -> dict[str, str]:
    """Read the whole texts of the hits' documents, in the order of their best hits."""
    revisions = {hit.row["document_id"]: hit.row["revision"] for hit in hits}
    with closing(reader.tables.cursor()) as session:
        found = dict(
            tuples(
                session,
                "SELECT revision, text FROM all_texts WHERE revision IN (SELECT unnest($1::BIGINT[]))",
                [sorted(set(revisions.values()))],
            )
        )
    return {document_id: found[revision] for document_id, revision in revisions.items()}
