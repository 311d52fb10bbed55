"""What every reading interface offers: search, inspect, look back. Knows nothing of terminals or HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from knowledge.embed.registry import embedder_id, open_embedder
from knowledge.errors import SettingsError
from knowledge.settings import Settings
from storage.connect import Connection, connect_snapshot, rows, tuples
from storage.lake import Lake, Publish, Snapshot
from storage.search import Filters, Hit, Mode, Searcher

_CHOICES = 5
"""documents that an ambiguous name lists"""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search."""

    query: str
    mode: Mode = "hybrid"
    k: int = 5
    min_score: float | None = None
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """Ranked chunks, and which version of the corpus gave them."""

    request: SearchRequest
    version: int
    seconds: float
    hits: tuple[Hit, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that `parquetry search --json` prints."""
        return {
            "query": self.request.query,
            "mode": self.request.mode,
            "version": self.version,
            "seconds": round(self.seconds, 4),
            "results": [_result(hit) for hit in self.hits],
        }


def _result(hit: Hit) -> dict[str, Any]:
    row = hit.row
    return {
        "chunk_id": row["chunk_id"],
        "document_id": row["document_id"],
        "uri": row["uri"],
        "filename": row["filename"],
        "title": row["title"],
        "namespace": row["namespace"],
        "page": row["page"],
        "headings": list(row["headings"] or ()),
        "span": [row["start"], row["end"]],
        "text": row["text"],
        "score": round(hit.score, 6),
        "scores": {side: _rounded(hit.scores.get(side)) for side in ("vector", "text", "rerank")},
        "tags": list(row["tags"] or ()),
        "metadata": json.loads(row["metadata"] or "{}"),
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 6)


class Reader:
    """Reads one version of a corpus.

    Args:
        settings: with the corpus's root and embedder.
        version: as `history` shows; None for the newest.

    Raises:
        SettingsError: there is no corpus, or no such version.
        StorageError: it cannot be read.
    """

    def __init__(self, settings: Settings, version: int | None = None) -> None:
        self._settings = settings
        self._lake = Lake(settings.corpus.root)
        self.snapshot: Snapshot = self._lake.snapshot(version)
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The DuckDB connection with the corpus's views."""
        if self._connection is None:
            self._connection = connect_snapshot(self.snapshot)
        return self._connection

    def search(self, request: SearchRequest) -> SearchResponse:
        """Rank chunks.

        Raises:
            SettingsError: the corpus was embedded by another model than the settings name.
        """
        started = perf_counter()
        searcher = Searcher(self.connection, request.filters)
        vector, model = None, None
        if request.mode != "text":
            stored = searcher.embedders()
            if stored:
                model = self._model_of(stored)
                embedder = open_embedder(self._settings.corpus.embedder, self._settings.embedding)
                vector = embedder.embed_query(request.query)
        hits = searcher.search(request.query, vector, model, request.mode, request.k)
        if request.min_score is not None:
            hits = [hit for hit in hits if hit.score >= request.min_score]
        return SearchResponse(request, self.snapshot.version, perf_counter() - started, tuple(hits))

    def _model_of(self, stored: list[str]) -> str:
        name = self._settings.corpus.embedder
        mine = embedder_id(name, self._settings.embedding) or open_embedder(name, self._settings.embedding).id
        if stored != [mine]:
            raise SettingsError(
                f"the corpus was embedded by {', '.join(stored)}, but corpus.embedder = {name!r} is {mine}; search "
                "with --mode text, set the embedder that was used, or refresh to embed everything again"
            )
        return mine

    def documents(self, namespace: str | None = None, status: str | None = None) -> list[dict[str, Any]]:
        """The current documents, one dictionary of columns each, by source and path."""
        return rows(
            self.connection,
            """SELECT * FROM documents WHERE ($1 IS NULL OR namespace = $1) AND ($2 IS NULL OR status = $2)
            ORDER BY namespace, source, path""",
            [namespace, status],
        )

    def document(self, name: str) -> dict[str, Any]:
        """One document by id, uri, path or filename; the first of these that fits decides.

        Raises:
            SettingsError: none or several match.
        """
        found = rows(
            self.connection,
            """SELECT * FROM documents WHERE document_id = $1 OR uri = $1 OR path = $1 OR filename = $1
            ORDER BY uri, document_id""",
            [name],
        )
        for column in ("document_id", "uri", "path", "filename"):
            exact = [row for row in found if row[column] == name]
            if len(exact) > 1:
                shown = ", ".join(row["document_id" if column == "uri" else "uri"] for row in exact[:_CHOICES])
                more = ", ..." if len(exact) > _CHOICES else ""
                better = "id" if column == "uri" else "uri"
                raise SettingsError(f"{name!r} means {len(exact)} documents ({shown}{more}); give the {better}")
            if exact:
                return exact[0]
        raise SettingsError(f"no document {name!r} in this corpus; `parquetry documents` lists them")

    def chunks(self, document_id: str) -> list[dict[str, Any]]:
        """The chunks of a document, without vectors, in order."""
        return rows(
            self.connection,
            "SELECT * EXCLUDE (vector, revision) FROM chunks WHERE document_id = $1 ORDER BY chunk_index",
            [document_id],
        )

    def text(self, document_id: str) -> str | None:
        """The stored normalised text of a document; None if it has none."""
        found = tuples(self.connection, "SELECT text FROM texts WHERE document_id = $1", [document_id])
        return found[0][0] if found else None

    def history(self, limit: int | None = None) -> list[Publish]:
        """The publishes, newest first."""
        return self._lake.history(limit)


def plain(value: Any) -> Any:
    """A value of a row as JSON can hold it."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no number for it.
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
