"""A corpus on disk, or on an object store, opened in this process: reads and changes behind `parquetry.Corpus`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parquetry.errors import SettingsError
from parquetry.model import ENTRY_TYPE
from parquetry.serving.corpus_backend import DocumentToAdd
from parquetry.serving.corpus_results import (
    Added,
    CorpusChange,
    Document,
    DocumentChunk,
    LazyText,
    SearchOptions,
    SearchResult,
)
from parquetry.serving.search.absences import why_not
from parquetry.serving.search.candidates import candidates_of
from parquetry.serving.search.entry_reading import live_entries
from parquetry.serving.search.explanations import Absence, Candidates
from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import Settings, load_settings, override
from parquetry.storage.database import Connection
from parquetry.storage.files.layout import Version
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.filters import Filters, restrict
from parquetry.storage.search.searcher import Hit

if TYPE_CHECKING:
    from parquetry.serving.embedded_writes import EmbeddedWrites


class EmbeddedCorpus:
    """A corpus opened in this process, as `parquetry.serving.corpus_backend.CorpusBackend`.

    Args:
        place: folder or URL of the corpus; a settings file that names it; or settings.
        version: version number, or a tag; None for the newest.
        namespace: namespace to search and write to; None to search all.
        create: True to make a corpus where there is none.
    """

    def __init__(
        self, place: str | os.PathLike[str] | Settings, version: Version | None, namespace: str | None, *, create: bool
    ) -> None:
        self._settings = _settings_of(place)
        self._asked_version = version
        self._namespace = namespace
        if create:
            Lake(self._settings.corpus.root, create=True, single_writer=self._settings.corpus.single_writer)
        self._lock = threading.Lock()
        self._changing = threading.Lock()
        self._writes: EmbeddedWrites | None = None
        self._reader = Reader(self._settings, version)
        self._users: dict[Reader, int] = {}
        """readers in use, with their users; one that is no longer current is closed by the last"""

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def connection(self) -> Connection:
        return self._reader.connection

    @property
    def version(self) -> int:
        return self._reader.snapshot.version

    def close(self) -> None:
        self._reader.close()

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        """Yield the current reader, which stays open for the block."""
        with self._lock:
            reader = self._reader
            self._users[reader] = self._users.get(reader, 0) + 1
        try:
            yield reader
        finally:
            with self._lock:
                self._users[reader] -= 1
                unused = not self._users[reader]
                if unused:
                    del self._users[reader]
                retired = unused and reader is not self._reader
            if retired:
                reader.close()

    def _reopen(self) -> None:
        """Read the newest version from now on."""
        reader = Reader(self._settings)
        with self._lock:
            before, self._reader = self._reader, reader
            unused = before not in self._users
        if unused:
            before.close()

    # --- search

    def _request(self, query: str, options: SearchOptions) -> SearchRequest:
        filters = options.filters or Filters()
        if self._namespace is not None and not filters.namespaces:
            filters = replace(filters, namespaces=(self._namespace,))
        return SearchRequest(
            query,
            mode=options.mode,
            k=options.k,
            filters=filters,
            level=options.level,
            look=Reranking(rerank=options.rerank),
            min_relevance=options.min_relevance,
            context=options.context,
        )

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[tuple[SearchResult, ...]]:
        with self._reading() as reader:
            responses = reader.search_all([self._request(query, options) for query in queries])
            return [self._results(response.hits) for response in responses]

    def search_by_vector(self, vector: Sequence[float], options: SearchOptions) -> tuple[SearchResult, ...]:
        request = replace(self._request("", options), vector=tuple(vector))
        with self._reading() as reader:
            return self._results(reader.search(request).hits)

    def _results(self, hits: Sequence[Hit]) -> tuple[SearchResult, ...]:
        texts = {document_id: self._text(document_id) for document_id in {hit.row["document_id"] for hit in hits}}
        return tuple(_result(hit, texts[hit.row["document_id"]]) for hit in hits)

    def _text(self, document_id: str) -> LazyText:
        def read() -> str:
            with self._reading() as reader:
                return reader.text(document_id) or ""

        return LazyText(read)

    def candidates(self, query: str, options: SearchOptions, *, vectors: bool) -> Candidates:
        with self._reading() as reader:
            return candidates_of(reader, self._request(query, options), with_vectors=vectors)

    def why_not(self, query: str, document_id: str, options: SearchOptions) -> Absence:
        with self._reading() as reader:
            return why_not(reader, self._request(query, options), document_id, sees=lambda _: True)

    # --- what it holds

    def documents(self, namespace: str | None) -> list[Document]:
        with self._reading() as reader:
            return [self._document(row) for row in reader.documents(namespace or self._namespace)]

    def document(self, document: str) -> Document:
        with self._reading() as reader:
            return self._document(reader.document(document))

    def _document(self, row: Mapping[str, Any]) -> Document:
        return Document(
            document_id=row["document_id"],
            filename=row["filename"],
            source=row["source"],
            uri=row["uri"],
            media_type=row["media_type"],
            size=row["size"],
            chunks=row["chunks"],
            status=row["status"],
            metadata=json.loads(row["metadata"] or "{}"),
            tags=tuple(row["tags"] or ()),
            visibility=row["visibility"],
            created_at=row["created_at"],
            row=row,
            full_text=self._text(row["document_id"]),
        )

    def chunks(self, document: str) -> list[DocumentChunk]:
        with self._reading() as reader:
            found = reader.chunks(reader.document(document)["document_id"])
        return [DocumentChunk(row["chunk_id"], row["chunk_index"], row["text"], row) for row in found]

    def entries(self, filters: Filters | None) -> list[dict[str, Any]]:
        with self._reading() as reader, closing(connect_readable(reader.snapshot)) as connection:
            if filters is not None and filters.caller is not None:
                restrict(connection, filters.caller)
            return live_entries(connection, self._namespace)

    # --- changes

    def add(self, document: DocumentToAdd, *, wait: bool) -> Added:
        with self._writing() as writes:
            return writes.add(document, wait=wait)

    def remove(self, document: str, *, wait: bool) -> CorpusChange:  # noqa: ARG002 (done on return)
        with self._writing() as writes:
            with self._reading() as reader:
                row = reader.document(document)
            return writes.remove(row)

    def clear(self, shared: bool | None, user_id: str | None, org_id: str | None, *, wait: bool) -> CorpusChange:  # noqa: ARG002 (done on return)
        with self._writing() as writes:
            return writes.clear(shared, user_id, org_id)

    def rebuild(self, documents: Sequence[str], *, embeddings_only: bool, wait: bool) -> CorpusChange:  # noqa: ARG002 (done on return)
        with self._writing() as writes:
            return writes.rebuild(documents, self._namespace, embeddings_only=embeddings_only)

    def refresh(self, targets: Sequence[str], *, allow_removals: bool, wait: bool) -> CorpusChange:  # noqa: ARG002 (done on return)
        with self._writing() as writes:
            return writes.refresh(targets, self._namespace, allow_removals=allow_removals)

    @contextmanager
    def _writing(self) -> Iterator[EmbeddedWrites]:
        """Yield what changes the corpus, one block at a time; afterwards the newest version is read."""
        from parquetry.serving.embedded_writes import EmbeddedWrites

        if self._asked_version is not None:
            raise SettingsError(f"version {self._asked_version} is opened for reading; open the corpus without version")
        with self._changing:
            if self._writes is None:
                self._writes = EmbeddedWrites(self._settings, self._namespace or self._settings.corpus.namespace)
            try:
                yield self._writes
            finally:
                # Also after a failure: another document, or another source, may be published.
                self._reopen()


def _settings_of(place: str | os.PathLike[str] | Settings) -> Settings:
    if isinstance(place, Settings):
        return place
    if Path(place).suffix == ".toml":
        return load_settings(place)
    return override(Settings(), {"corpus": {"root": os.fspath(place)}})


def _result(hit: Hit, text: LazyText) -> SearchResult:
    row = hit.row
    return SearchResult(
        chunk_id=row["chunk_id"],
        document_id=row["document_id"],
        text=row["text"],
        score=hit.score,
        relevance=hit.relevance,
        scores=hit.scores,
        row=row,
        ranks=hit.ranks,
        also_in=hit.also_in,
        # An entry is a text of its own, and no document.
        full_text=LazyText(lambda: str(row["text"])) if row["media_type"] == ENTRY_TYPE else text,
    )
