"""Everything that a search considered, and why each chunk is a result or not. Decides as `Reader.search` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from parquetry.embed.base import Vectors
from parquetry.serving.search.assessment import assessed
from parquetry.serving.search.best_documents import CHUNKS_PER_DOCUMENT, best_of_each
from parquetry.serving.search.explanations import Candidates, Dropped, SearchCandidate, Standing
from parquetry.serving.search.reranking import RerankerUse, Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import SearchSettings, Settings
from parquetry.storage.search.searcher import DEEPER, LOOKAHEAD, Hit, Searcher, fold


@dataclass(frozen=True, slots=True)
class _Loss:
    """Why a chunk was dropped."""

    why: Dropped
    of: str | None = None
    """id of the chunk that it gave way to"""


@dataclass
class _Course:
    """The course of a search, step by step."""

    hits: list[Hit]
    """chunks still in the race, best first"""
    lost: dict[str, _Loss] = field(default_factory=dict)
    """by chunk id"""
    rescored: dict[str, Hit] = field(default_factory=dict)
    """chunks with the scores of the later steps, by chunk id"""
    judged: RerankerUse | None = None
    """None if no reranker was used"""

    def drop(self, hits: Sequence[Hit], why: Dropped) -> None:
        for hit in hits:
            self.lost.setdefault(hit.row["chunk_id"], _Loss(why))


def candidates_of(reader: Reader, request: SearchRequest, *, with_vectors: bool = False) -> Candidates:
    """Run a search and keep everything that it considered.

    A reranker is asked once more than by the search itself.

    Args:
        reader: reader of the corpus.
        request: the search.
        with_vectors: True to return the query's vectors.

    Raises:
        SettingsError: as for `Reader.search`.
    """
    with reader.searching(request) as (searcher, vectors, settings):
        ranked, counted = _considered(searcher, request, vectors, settings.search)
        considered = assessed(ranked, searcher, vectors, settings.search.calibration)
        course = _run(considered, counted, request, searcher, settings)
        _apply_threshold(course, request)
        search = {name: value for name, value in asdict(searcher.explanation).items() if name != "seconds"}
    if course.judged is not None:
        search["rerank"] = course.judged.as_json()
    if request.mode == "hybrid":
        search |= {"fusion": settings.search.fusion, "vector_weight": settings.search.vector_weight}
    found = {name: tuple(map(float, vector)) for name, vector in vectors.items()} if with_vectors else None
    numbers = {hit.row["chunk_id"]: int(hit.row["chunk_index"]) for hit in considered}
    return Candidates(request.query, reader.snapshot.version, _told(considered, course), search, found, numbers)


def _considered(
    searcher: Searcher, request: SearchRequest, vectors: Mapping[str, Vectors], settings: SearchSettings
) -> tuple[list[Hit], int]:
    """Return the chunks of both sides' lists, best first, and how many of them the search looked at."""
    wanted = request.look.candidates(request.k)
    by_document = request.level == "document"
    looked = wanted * CHUNKS_PER_DOCUMENT if by_document else wanted
    beyond = 0 if by_document or request.duplicates else LOOKAHEAD
    depth = max(looked, settings.depth) if request.mode == "hybrid" else looked + beyond
    while True:
        best = looked + LOOKAHEAD
        hits = searcher.candidates(request.query, vectors, request.mode, depth, best=best, context=request.context)
        if by_document:
            if len(_different(hits[:looked], request)) >= wanted or len(hits) < looked:
                return hits, looked
            looked *= CHUNKS_PER_DOCUMENT
            depth = max(looked, settings.depth) if request.mode == "hybrid" else looked
        else:
            enough = request.duplicates or len(_different(hits, request)) >= wanted
            if enough or _longest(hits) < depth:
                return hits, len(hits)
            depth = DEEPER * _longest(hits)


def _longest(hits: Sequence[Hit]) -> int:
    """Return the length of the longer list of the two sides."""
    return max((rank for hit in hits for rank in hit.ranks.values()), default=0)


def _different(hits: Sequence[Hit], request: SearchRequest, counted: int | None = None) -> list[Hit]:
    """Return the best chunk of each document, or all chunks; equal texts are one, unless duplicates are wanted."""
    found = best_of_each(hits, request.mode, counted) if request.level == "document" else list(hits)
    return found if request.duplicates else fold(found)


def _run(
    considered: Sequence[Hit], counted: int, request: SearchRequest, searcher: Searcher, settings: Settings
) -> _Course:
    """Repeat the steps after ranking, and note what each of them drops."""
    course = _Course(_different(considered, request, counted))
    # Documents have scores of their own.
    course.rescored = {hit.row["chunk_id"]: hit for hit in course.hits}
    _note_equals(course, considered, request)
    wanted = request.look.candidates(request.k)
    course.drop(course.hits[wanted:], "beyond-k" if request.look == Reranking() else "beyond-candidates")
    hits = course.hits[:wanted]
    if request.look != Reranking():
        # All of them, in the order in which the search would take them.
        looked = request.look.apply(hits, request.query, len(hits), searcher.connection, settings)
        hits, course.judged = list(looked.hits), looked.judged
    if course.judged is not None:
        hits = assessed(hits, searcher, {}, settings.search.calibration, course.judged.by)
    course.rescored |= {hit.row["chunk_id"]: hit for hit in hits}
    kept, rest = hits[: request.k], hits[request.k :]
    worst = min((hit.score for hit in kept), default=0.0)
    for hit in rest:
        course.drop([hit], "diversity" if request.look.diversify and hit.score > worst else "beyond-k")
    course.hits = kept
    return course


def _note_equals(course: _Course, considered: Sequence[Hit], request: SearchRequest) -> None:
    """Note the chunks that gave way to one with the same text, or to a better one of their document."""
    kept = {hit.row["chunk_id"] for hit in course.hits}
    for hit in course.hits:
        for row in hit.also_in:
            course.lost[row["chunk_id"]] = _Loss("duplicate", hit.row["chunk_id"])
    best: dict[str, str] = {}
    for hit in considered:
        chunk, document = hit.row["chunk_id"], hit.row["document_id"]
        first = best.setdefault(document, chunk)
        if request.level == "document" and chunk not in kept and chunk not in course.lost:
            course.lost[chunk] = _Loss("same-document", first)


def _apply_threshold(course: _Course, request: SearchRequest) -> None:
    course.rescored |= {hit.row["chunk_id"]: hit for hit in course.hits}
    if request.min_relevance is not None:
        low = [hit for hit in course.hits if (hit.relevance or 0.0) < request.min_relevance]
        course.drop(low, "threshold")
        course.hits = [hit for hit in course.hits if (hit.relevance or 0.0) >= request.min_relevance]


def _told(considered: Sequence[Hit], course: _Course) -> tuple[SearchCandidate, ...]:
    """Return the candidates, results first."""
    ranks = {hit.row["chunk_id"]: rank for rank, hit in enumerate(course.hits, 1)}
    found = []
    for place, hit in enumerate(considered, 1):
        chunk = hit.row["chunk_id"]
        last = course.rescored.get(chunk, hit)
        loss = course.lost.get(chunk)
        sides = {
            side: Standing(hit.ranks[side], hit.scores[side]) if side in hit.scores else None
            for side in ("vector", "text")
        }
        found.append(
            SearchCandidate(
                chunk_id=chunk,
                document_id=hit.row["document_id"],
                filename=hit.row["filename"],
                **sides,
                fused=Standing(place, hit.score),
                rerank=last.scores.get("rerank"),
                score=last.score,
                relevance=last.relevance,
                rank=ranks.get(chunk),
                dropped=None if loss is None else loss.why,
                duplicate_of=None if loss is None else loss.of,
                identity=hit.identity,
            )
        )
    return tuple(sorted(found, key=lambda each: (each.rank is None, each.rank or each.fused.rank)))
