"""Search answers of all dialects: requests, records of them, and the forms that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from fastapi import Request

from parquetry.errors import ParquetryError
from parquetry.serving.access.audit import AuditEvent, Event
from parquetry.serving.access.principals import Principal
from parquetry.serving.http.metrics import PROVIDER, Metrics
from parquetry.serving.http.problems import Problem, known_problem
from parquetry.storage.search.searcher import Hit

GONE = 499
"""status of requests that nobody waits for any more, for metrics and audit events alone"""


class Recorded:
    """Record of one request: an audit event and metrics, written when it was answered, or failed.

    Args:
        request: the request.
        principal: its maker.
        event: kind of event.
        namespace: namespace that it is about; None if it is not known yet, or if there are several.
    """

    def __init__(self, request: Request, principal: Principal, event: Event, namespace: str | None) -> None:
        self._request, self._principal = request, principal
        self._event, self.namespace = event, namespace
        self._started = perf_counter()

    @property
    def _metrics(self) -> Metrics:
        found: Metrics = self._request.app.state.metrics
        return found

    def answered(self, hits: Sequence[Hit], queries: Sequence[str], **more: Any) -> None:
        """Record an answer of chunks, with further fields of its event."""
        scores = [hit.relevance for hit in hits]
        self._metrics.retrieved(scores)
        known = [score for score in scores if score is not None]
        self.write(
            queries=len(queries),
            chunks=len(hits),
            documents=len({hit.row["document_id"] for hit in hits}),
            top_score=max(known, default=None),
            text="\n".join(queries),
            **more,
        )

    def failed(self, error: Exception, queries: Sequence[str]) -> None:
        """Record a request that failed before it was answered."""
        status, reason = outcome_of(error)
        self.write(status=status, reason=reason, queries=len(queries), text="\n".join(queries))

    def left(self, queries: Sequence[str]) -> None:
        """Record a request whose maker left before it was answered."""
        self.write(status=GONE, queries=len(queries), text="\n".join(queries))

    def spent(self, input_tokens: int, output_tokens: int) -> None:
        """Count the tokens of a question to a language model."""
        for kind, tokens in (("input", input_tokens), ("output", output_tokens)):
            self._metrics.tokens.labels(PROVIDER, kind).inc(tokens)

    def ingested(self, documents: int, chunks: int) -> None:
        """Record documents that were added."""
        self._metrics.ingested(documents)
        self.write(documents=documents, chunks=chunks)

    def write(self, **counts: Any) -> None:
        """Record the event with its counts."""
        client = self._request.client
        event = AuditEvent(
            self._event,
            namespace=self.namespace,
            address=None if client is None else client.host,
            milliseconds=(perf_counter() - self._started) * 1000,
            **counts,
        )
        self._request.app.state.resources.audit.write(event.by(self._principal))


def outcome_of(error: Exception) -> tuple[int, str]:
    """Return status and reason of a failure, as they are recorded."""
    if isinstance(error, ParquetryError | Problem):
        problem = known_problem(error)
        return int(problem.status), problem.reason
    return 500, "unexpected"


def milliseconds(row: Mapping[str, Any], column: str) -> int:
    """Return a time of a row in milliseconds since 1970; 0 if it has none."""
    value = row[column]
    return 0 if value is None else int(value.timestamp() * 1000)
