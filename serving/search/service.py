"""The reader behind every interface: search, documents, history. Knows nothing of terminals or HTTP."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, Any

from parquetry.embed.base import Vectors
from parquetry.errors import SettingsError
from parquetry.serving.search.answer_cache import AnswerCache
from parquetry.serving.search.assessment import assessed, uncalibrated
from parquetry.serving.search.best_documents import best_of_documents
from parquetry.serving.search.document_names import listed, the_one
from parquetry.serving.search.query_vectors import Asked, vectors_of
from parquetry.serving.search.requests import Level, Ranking, SearchRequest, SearchResponse
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.search_events import SearchEvent, SearchLog, SearchRecord, mean, now
from parquetry.serving.search.search_traces import trace_search
from parquetry.serving.search.searchers import Searchers
from parquetry.serving.search.stopwatch import Stopwatch
from parquetry.settings.sections import Settings
from parquetry.storage.connect import open_index, replacement, snapshot_of, with_views
from parquetry.storage.database import FAILURES, Connection, query, rows, tuples
from parquetry.storage.files.layout import Version
from parquetry.storage.index.open_index import OpenIndex
from parquetry.storage.lake.damage import naming_damage
from parquetry.storage.lake.history import Publish
from parquetry.storage.lake.lake import SEARCHED, Lake, Snapshot
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Searcher

if TYPE_CHECKING:
    from parquetry.storage.index.vector_memory import VectorMemories

__all__ = ["Level", "Ranking", "Reader", "SearchRequest", "SearchResponse"]
INDEXES = 3
"""maximum number of indexes tried per search: the current one, one updated from its predecessor, a full rebuild"""


class Reader:
    """Reader of one version of a corpus. Thread-safe.

    Args:
        settings: settings with the corpus's root and embedder.
        version: version number, as in `history`, or a tag; None for the newest.
        cache: answer cache to share between readers of any version and settings; None for a private one.
        locked: only for `query` with untrusted SQL (`parquetry.storage.search.locked`).
        memory: memory to share between readers of a long-lived process; None to read index files only.
        snapshot: the version itself, for one that is not published.

    Raises:
        SettingsError: the corpus or the version does not exist.
        StorageError: the corpus cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        version: Version | None = None,
        cache: AnswerCache[Ranking] | None = None,
        *,
        locked: bool = False,
        memory: VectorMemories | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._settings = settings
        self._locked = locked
        self._lake = Lake(settings.corpus.root, single_writer=settings.corpus.single_writer)
        self.snapshot: Snapshot = snapshot or self._lake.snapshot(version, needed=SEARCHED)
        self._asked_version = version
        self._index: OpenIndex | None = None
        self._viewed = False
        """True once the index has the views that only `connection` needs"""
        self._tables: Connection | None = None
        self._lock = threading.RLock()
        self._searchers = Searchers(settings.search, memory)
        self._cache = AnswerCache[Ranking](settings.search.cache_entries) if cache is None else cache
        self._log = SearchLog(settings.search.log) if settings.search.log else None
        self._record = SearchRecord(self._lake) if settings.search.record_searches else None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close; if something failed because of damaged files, name them."""
        self.close()
        if error is not None:
            with naming_damage(self.snapshot):
                raise error

    @property
    def index(self) -> OpenIndex:
        """The search index, brought up to date on first use."""
        with self._lock:
            return self._index or self._keep(open_index(self._lake, self.snapshot, self._asked_version, self._settings))

    def _keep(self, index: OpenIndex) -> OpenIndex:
        """Switch to an index."""
        self._index, self._viewed = index, False
        if index.version != self.snapshot.version:
            # A newer version was published since; nothing of the earlier version was shown yet.
            self.snapshot, self._tables = snapshot_of(self._lake, self.snapshot, index), None
        return index

    @property
    def connection(self) -> Connection:
        """The DuckDB connection with all views and macros; opening it brings the search index up to date."""
        with self._lock:
            if not self._viewed:
                opened, _ = with_views(
                    *(self._lake, self.snapshot, self._asked_version, self._settings, self.index), locked=self._locked
                )
                self._keep(opened)
                self._viewed = True
            return self.index.connection

    def _is_replaced(self, index: OpenIndex, error: Exception) -> bool:
        """Return True if the failed index has been replaced because its file was damaged."""
        with self._lock:
            if self._index is not index:
                # Another thread replaced it first.
                return True
            another = replacement(self._lake, self.snapshot, self._asked_version, self._settings, index, error)
            if another is None:
                return False
            index.close()
            self._keep(another)
            return True

    def query(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a statement over all views and macros.

        Returns:
            Column names and rows.

        Raises:
            QueryError: the statement is invalid.
            DamagedCorpus: the statement uses damaged data.
        """
        for _ in range(INDEXES):
            connection = self.connection
            try:
                return query(connection, statement)
            except FAILURES as error:
                if not self._is_replaced(self.index, error):
                    raise
        return query(self.connection, statement)

    @property
    def tables(self) -> Connection:
        """The DuckDB connection with views directly on the Parquet files; needs no index."""
        with self._lock:
            if self._tables is None:
                self._tables = connect_readable(self.snapshot)
            return self._tables

    def close(self) -> None:
        """Record the searches, and release the index for later versions."""
        with self._lock:
            if self._record is not None:
                self._record.flush()
            self._searchers.close()
            for opened in (self._index, self._tables):
                if opened is not None:
                    opened.close()
            self._index = self._tables = None
            self._viewed = False

    # --- search

    def search(self, request: SearchRequest) -> SearchResponse:
        """Rank chunks.

        Raises:
            SettingsError: the settings name a model other than that of the corpus, a filter is invalid, or no documents
                have vectors of the dimension of the given one.
        """
        (response,) = self.search_all([request])
        return response

    def search_all(self, requests: Sequence[SearchRequest]) -> Iterator[SearchResponse]:
        """Rank chunks for many queries, in order; adjacent queries with the same filters are embedded together.

        Raises:
            SettingsError: as in `search`, or nothing was ever published.
        """
        if self._asked_version is None and not self.snapshot.version:
            raise SettingsError(
                f"nothing is published in corpus {self._settings.corpus.root} yet; run `parquetry refresh` first"
            )
        for filters, group in groupby(requests, key=lambda request: request.filters):
            yield from self._search_group(filters, list(group))

    @contextmanager
    def searching(self, request: SearchRequest) -> Iterator[tuple[Searcher, Mapping[str, Vectors], Settings]]:
        """Yield what a search works with: a searcher with the request's filters, its vectors by embedder, settings."""
        with self._searchers.acquire(self.index, request.filters) as searcher:
            yield searcher, self._vectors(searcher, [request])[request], self._settings

    def _search_group(self, filters: Filters, requests: Sequence[SearchRequest]) -> Iterator[SearchResponse]:
        left, tries = list(requests), INDEXES
        while left:
            index, tries = self.index, tries - 1
            try:
                for response in self._answers(index, filters, tuple(left)):
                    left.pop(0)
                    yield response
                    # Only the caller decides how long it lives: it may hold thousands of chunks with their texts.
                    del response
            except FAILURES as error:
                if not tries or not self._is_replaced(index, error):
                    raise

    def _answers(
        self, index: OpenIndex, filters: Filters, requests: Sequence[SearchRequest]
    ) -> Iterator[SearchResponse]:
        watch = Stopwatch()
        with ExitStack() as held:
            watch.stage("open")
            known = {request: ranking for request in requests if (ranking := self._cache.get(self._key(request)))}
            unknown = [request for request in requests if request not in known]
            if unknown:
                searcher = held.enter_context(self._searchers.acquire(index, filters))
                watch.stage("filter")
                vectors = self._vectors(searcher, unknown)
                watch.stage("embed")
            shared = {stage: seconds / len(requests) for stage, seconds in watch.seconds.items()}
            to_come = Counter(requests)
            for request in requests:
                started = perf_counter()
                ranking = known.pop(request, None)
                cached = ranking is not None
                if ranking is None:
                    ranking = self._rank(searcher, request, vectors[request], shared)
                    self._cache.put(self._key(request), ranking)
                to_come[request] -= 1
                if to_come[request]:
                    # A query that repeats within the batch is neither computed nor paid for again.
                    known[request] = ranking
                seconds = sum(shared.values()) + perf_counter() - started
                response = SearchResponse(request, self.snapshot.version, seconds, cached, ranking)
                self._tell(response)
                trace_search(response)
                del ranking
                yield response
                del response

    def _key(self, request: SearchRequest) -> Hashable:
        """Return the cache key: everything an answer depends on."""
        settings = self._settings
        # The files distinguish a corpus from one recreated in its place that has reached the same version.
        corpus = (self.snapshot.layout.root, self.snapshot.version, self.snapshot.files["documents"])
        return (request, corpus, settings.search, settings.embedders, settings.embedding, settings.llm, settings.rerank)

    def _vectors(
        self, searcher: Searcher, requests: Sequence[SearchRequest]
    ) -> Mapping[SearchRequest, Mapping[str, Vectors]]:
        """Return request -> embedder id -> vector to search by; empty if there is nothing to compare with."""
        asked = [Asked(each.query, each.context, each.vector, each.mode != "text") for each in requests]
        return dict(zip(requests, vectors_of(asked, searcher, self._settings), strict=True))

    def _rank(
        self,
        searcher: Searcher,
        request: SearchRequest,
        vectors: Mapping[str, Vectors],
        before: Mapping[str, float],
    ) -> Ranking:
        """Search, then rerank and diversify.

        Args:
            searcher: searcher with the request's filters.
            request: the request.
            vectors: embedder id -> float32[dimension] of the query.
            before: seconds of the preceding stages, by stage.
        """
        wanted = request.look.candidates(request.k)
        if request.level == "document":
            hits = best_of_documents(
                searcher,
                request.query,
                vectors,
                request.mode,
                wanted,
                folded=not request.duplicates,
                context=request.context,
            )
        else:
            distinct = not request.duplicates
            hits = searcher.search(
                request.query, vectors, request.mode, wanted, distinct=distinct, context=request.context
            )
        explanation = asdict(searcher.explanation)
        explanation["seconds"] = {**before, **explanation["seconds"]}
        watch, reranker = Stopwatch(), None
        if request.look != Reranking():
            looked = request.look.apply(hits, request.query, request.k, searcher.connection, self._settings)
            hits = list(looked.hits)
            if looked.judged is not None:
                explanation["rerank"], reranker = looked.judged.as_json(), looked.judged.by
            watch.stage("second look")
        calibration = self._settings.search.calibration
        hits = assessed(hits, searcher, vectors, calibration, reranker)
        explanation["uncalibrated"] = uncalibrated(vectors, calibration, reranker)
        watch.stage("relevance")
        if request.min_relevance is not None:
            hits = [hit for hit in hits if (hit.relevance or 0.0) >= request.min_relevance]
        explanation["seconds"] |= watch.seconds
        return Ranking(tuple(hits), explanation)

    def _tell(self, response: SearchResponse) -> None:
        """Log and record an answered search."""
        request, scores = response.request, [hit.score for hit in response.hits]
        event = SearchEvent(
            searched_at=now(),
            query=request.query,
            mode=request.mode,
            level=request.level,
            k=request.k,
            caller=request.filters.caller is not None,
            version=response.version,
            count=len(scores),
            mean_score=mean(scores),
            best_score=max(scores, default=None),
            seconds=response.seconds,
            cached=response.cached,
        )
        for place in (self._log, self._record):
            if place is not None:
                place.write(event)

    # --- documents and history

    def texts(self, document_ids: Sequence[str], most: int | None = None) -> dict[str, str]:
        """Return the stored normalised texts by document id; documents without text are missing.

        Args:
            document_ids: the documents.
            most: maximum number of characters of each, from its start; None for the whole text.
        """
        return self._of_texts("t.text" if most is None else f"left(t.text, {most:d})", document_ids)

    def text_lengths(self, document_ids: Sequence[str]) -> dict[str, int]:
        """Return the characters of the stored texts by document id; documents without text are missing."""
        return self._of_texts("length(t.text)", document_ids)

    def _of_texts(self, value: str, document_ids: Sequence[str]) -> dict[str, Any]:
        if not document_ids:
            return {}
        with closing(self.tables.cursor()) as session:
            found = tuples(
                session,
                f"""SELECT d.document_id, {value} FROM all_texts AS t JOIN (
                    SELECT document_id, revision FROM documents WHERE document_id IN (SELECT unnest($1::VARCHAR[]))
                ) AS d USING (revision)""",
                [sorted(set(document_ids))],
            )
        return dict(found)

    def documents(
        self, namespace: str | None = None, status: str | None = None, names: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the current documents, as in `parquetry.serving.search.document_names.listed`."""
        return listed(self.tables, namespace, status, names)

    def document(self, name: str) -> dict[str, Any]:
        """Return the one document that a name matches, as in `parquetry.serving.search.document_names.the_one`."""
        return the_one(self.tables, name)

    def chunks(self, document_id: str) -> list[dict[str, Any]]:
        """Return the chunks of a document in order, without vectors."""
        return rows(
            self.tables,
            "SELECT * EXCLUDE (vector, revision) FROM chunks WHERE document_id = $1 ORDER BY chunk_index",
            [document_id],
        )

    def text(self, document_id: str) -> str | None:
        """Return the stored normalised text of a document; None if it has none."""
        return self.texts([document_id]).get(document_id)

    def history(self, limit: int | None = None) -> list[Publish]:
        """Return the published versions, newest first."""
        return self._lake.history(limit)

    def runs(self, run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return rows of the table `runs` by id; unrecorded runs are missing."""
        statement = "SELECT * FROM runs WHERE run_id IN (SELECT unnest($1::VARCHAR[]))"
        return {row["run_id"]: row for row in rows(self.tables, statement, [list(run_ids)])}
