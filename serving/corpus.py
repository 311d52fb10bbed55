"""The public class `parquetry.Corpus`: a corpus for programs, on disk or behind a service."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, overload

from parquetry.errors import SettingsError
from parquetry.serving.corpus_backend import CorpusBackend, DocumentToAdd, kind_of
from parquetry.serving.corpus_results import (
    Added,
    CorpusChange,
    Document,
    DocumentChunk,
    Level,
    Mode,
    SearchedEvent,
    SearchOptions,
    SearchResult,
)

if TYPE_CHECKING:
    from parquetry.model import Visibility
    from parquetry.serving.search.explanations import Absence, Candidates
    from parquetry.settings.sections import Settings
    from parquetry.storage.database import Connection
    from parquetry.storage.search.filters import Filters

_SERVICE = re.compile(r"https?://", re.IGNORECASE)
_TIMEOUT = 120.0
"""seconds; longer than a service waits for a write"""


class Corpus:
    """A corpus, to search, inspect and change; on disk, or behind a service at `http://` or `https://`.

    On disk it is one version, until this object publishes another. A service answers from its newest version. Several
    threads may search at a time; `sql` is for one.

    Args:
        place: folder or URL of the corpus; a settings file that names it; settings; or the address of a service.
        version: version number, as in `parquetry history`, or a tag, for reading; None for the newest. Not for a
            service.
        token: token of the service (`parquetry token create`).
        namespace: namespace that is searched and written to. None searches all of a corpus on disk and writes to
            its `corpus.namespace`; for a service it is the token's own.
        on_search: called after each search with its `SearchedEvent`.
        create: True to make a corpus where there is none. Not for a service.
        timeout: seconds that a service may take to answer a request.

    Raises:
        SettingsError: the corpus or the version does not exist, or an argument does not fit the place.
        StorageError: the corpus cannot be read.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | Settings,
        *,
        version: int | str | None = None,
        token: str | None = None,
        namespace: str | None = None,
        on_search: Callable[[SearchedEvent], object] | None = None,
        create: bool = False,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._on_search = on_search
        self._backend: CorpusBackend
        if isinstance(place, str) and _SERVICE.match(place):
            if version is not None or create:
                raise SettingsError("a service answers from the newest version of its corpus; leave version and create")
            from parquetry.serving.remote import RemoteCorpus

            self._backend = RemoteCorpus(place, token, namespace, timeout)
        else:
            if token is not None:
                raise SettingsError("a token is for a service at http:// or https://; a corpus on disk needs none")
            from parquetry.serving.embedded import EmbeddedCorpus

            self._backend = EmbeddedCorpus(place, version, namespace, create=create)

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._backend.close()

    @property
    def settings(self) -> Settings:
        """Settings of a corpus on disk.

        Raises:
            SettingsError: the corpus is behind a service.
        """
        return self._backend.settings

    @property
    def version(self) -> int:
        """Number of the version that is read."""
        return self._backend.version

    # --- search

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        mode: Mode = "hybrid",
        filters: Filters | None = None,
        context: str | None = None,
        min_relevance: float | None = None,
        level: Level = "chunk",
        rerank: bool = False,
    ) -> tuple[SearchResult, ...]:
        """Return the chunks that best answer a query, best first.

        Args:
            query: query in natural language.
            k: maximum number of results.
            mode: `hybrid`, `vector`, or `text` for keyword ranking.
            filters: caller and document filters; applied before ranking. The token names the caller of a service.
            context: earlier turns, or another text that weighs in.
            min_relevance: 0 to 1; leaves out what is less likely to answer.
            level: `chunk`, or `document` to rank documents by their best chunks and identity.
            rerank: True to rescore the best with the configured reranker.
        """
        options = SearchOptions(k, mode, filters, context, min_relevance, level, rerank)
        return self._search([query], options)[0]

    def search_all(
        self,
        queries: Sequence[str],
        *,
        k: int = 5,
        mode: Mode = "hybrid",
        filters: Filters | None = None,
        context: str | None = None,
        min_relevance: float | None = None,
        level: Level = "chunk",
        rerank: bool = False,
    ) -> list[tuple[SearchResult, ...]]:
        """Return the results of many queries, in order; faster than one search after the other.

        Args:
            queries: queries in natural language.
            k: as in `search`, like the remaining arguments.
            mode: see `search`.
            filters: see `search`.
            context: see `search`.
            min_relevance: see `search`.
            level: see `search`.
            rerank: see `search`.
        """
        return self._search(queries, SearchOptions(k, mode, filters, context, min_relevance, level, rerank))

    def search_by_vector(
        self,
        vector: Sequence[float],
        *,
        k: int = 5,
        filters: Filters | None = None,
        min_relevance: float | None = None,
        level: Level = "chunk",
    ) -> tuple[SearchResult, ...]:
        """Return the chunks whose vectors are nearest to a vector.

        Args:
            vector: vector of the corpus's embedder; any length but zero.
            k: as in `search`, like the remaining arguments.
            filters: see `search`.
            min_relevance: see `search`.
            level: see `search`.
        """
        options = SearchOptions(k, "vector", filters, None, min_relevance, level)
        started = perf_counter()
        results = self._backend.search_by_vector([float(each) for each in vector], options)
        self._tell([None], [results], options, started)
        return results

    def _search(self, queries: Sequence[str], options: SearchOptions) -> list[tuple[SearchResult, ...]]:
        if isinstance(queries, str):
            raise SettingsError("search_all takes a list of queries; search takes one")
        started = perf_counter()
        found = self._backend.search(queries, options) if queries else []
        self._tell(queries, found, options, started)
        return found

    def _tell(
        self,
        queries: Sequence[str | None],
        found: Sequence[tuple[SearchResult, ...]],
        options: SearchOptions,
        started: float,
    ) -> None:
        if self._on_search is None:
            return
        seconds = (perf_counter() - started) / max(1, len(queries))
        for query, results in zip(queries, found, strict=True):
            self._on_search(SearchedEvent(query, options, results, self._backend.version, seconds))

    @overload
    def explain(self, query: str, document_id: None = None, *, vectors: bool = False, **options: Any) -> Candidates: ...

    @overload
    def explain(self, query: str, document_id: str, **options: Any) -> Absence: ...

    def explain(
        self, query: str, document_id: str | None = None, *, vectors: bool = False, **options: Any
    ) -> Candidates | Absence:
        """Explain a search: every chunk that it considered, or why one document is not among the results.

        Args:
            query: query in natural language.
            document_id: id of the document that is missed; None for all candidates.
            vectors: True for the query's vector as well, with all candidates.
            options: keyword arguments of `search`: `k`, `mode`, `filters`, `context`, `min_relevance`, `level`, and
                `rerank`.

        Returns:
            All candidates with their scores and why each was dropped; or where the one document stands.
        """
        chosen = SearchOptions(**options)
        if document_id is None:
            return self._backend.candidates(query, chosen, vectors=vectors)
        return self._backend.why_not(query, document_id, chosen)

    # --- what it holds

    def documents(self, namespace: str | None = None) -> list[Document]:
        """Return the current documents; as mappings, they are rows of the view `documents`.

        Args:
            namespace: only documents of this namespace; None for the corpus's, or all.
        """
        return self._backend.documents(namespace)

    def document(self, document: str) -> Document:
        """Return the one document that an id matches, on disk also a uri or name.

        Raises:
            SettingsError: no document or several documents match.
        """
        return self._backend.document(document)

    def text(self, document: str) -> str | None:
        """Return the stored text of a document, found as in `document`; None if it has none."""
        return self._backend.document(document).load() or None

    def chunks(self, document: str) -> list[DocumentChunk]:
        """Return the chunks of a document in order; the document is found as in `document`."""
        return self._backend.chunks(document)

    def entries(self, filters: Filters | None = None) -> list[dict[str, Any]]:
        """Return the live knowledge entries, most recently stated first: columns of the view `entries`.

        Args:
            filters: only `caller` is used, to limit the entries to those it may see; the token is a service's caller.
        """
        return self._backend.entries(filters)

    def sql(self, statement: str) -> Any:
        """Run a DuckDB SQL statement on the views and search macros of `connect`.

        It can read and write files, as DuckDB can: for operators only, and only on a corpus on disk.

        Returns:
            DuckDB's relation: `.fetchall()`, `.df()`, `.to_arrow_table()`.

        Raises:
            SettingsError: the corpus is behind a service.
        """
        return self.connection.sql(statement)

    @property
    def connection(self) -> Connection:
        """The DuckDB connection behind `sql`."""
        return self._backend.connection

    # --- changes

    def add(
        self,
        content: str | os.PathLike[str],
        *,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        visibility: Visibility | None = None,
        shared: bool | None = None,
        user_id: str | None = None,
        org_id: str | None = None,
        wait: bool = True,
    ) -> Added:
        """Add a file, a text or a web page; the same name and owner again replaces it.

        Args:
            content: path of a file, a text, or an address with http:// or https://.
            name: name of the document; None for the file's name, or one made from the content.
            metadata: values to filter by, and to show with results.
            tags: labels to filter by.
            visibility: `public`, `organization` or `individual`; by default what fits the owner.
            shared: short form: True for the organization, or everybody; False for the user alone.
            user_id: owner of an individual document; by default the token's user.
            org_id: organization that may see it; by default the token's.
            wait: False to return once it is kept. A service then indexes it by itself, a corpus on disk with the next
                `add` or `refresh` of this object.

        Raises:
            DocumentError: the document could not be read, with a reason; nothing is added.
            SettingsError: an argument is wrong, or the corpus was opened at an earlier version.
        """
        if isinstance(tags, str):
            raise SettingsError(f"tags is a list of texts, not the text {tags!r}")
        kind = kind_of(content)
        document = DocumentToAdd(
            *(kind, os.fspath(content), name, dict(metadata or {}), tuple(tags)),
            *(visibility, shared, user_id, org_id),
        )
        return self._backend.add(document, wait=wait)

    def remove(self, document: str, *, wait: bool = True) -> CorpusChange:
        """Remove a document, found as in `document`; if it was added, its bytes as well.

        A document of a configured source returns with the next refresh, unless it is gone there, too.
        """
        return self._backend.remove(document, wait=wait)

    def clear(
        self,
        *,
        shared: bool | None = None,
        user_id: str | None = None,
        org_id: str | None = None,
        wait: bool = True,
    ) -> CorpusChange:
        """Remove what was added to the namespace, and its bytes; documents of sources stay.

        Args:
            shared: True for what is public or an organization's, False for what belongs to one user, None for both.
            user_id: only documents of this user.
            org_id: only documents of this organization.
            wait: False to return at once; a service then carries it out.
        """
        return self._backend.clear(shared, user_id, org_id, wait=wait)

    def rebuild(self, *documents: str, embeddings_only: bool = False, wait: bool = True) -> CorpusChange:
        """Extract and index documents again, whatever their hashes say.

        Args:
            documents: ids, uris, or globs over names and paths; none for every document.
            embeddings_only: True to compute new vectors from the stored texts.
            wait: as in `clear`.
        """
        return self._backend.rebuild(documents, embeddings_only=embeddings_only, wait=wait)

    def refresh(self, *targets: str, allow_removals: bool = False, wait: bool = True) -> CorpusChange:
        """Bring the corpus up to date with its sources.

        Args:
            targets: names of sources, folders or files; none for all sources.
            allow_removals: True to allow the removal of any number of documents.
            wait: as in `clear`.
        """
        return self._backend.refresh(targets, allow_removals=allow_removals, wait=wait)
