"""Spans and metrics of searches, for OpenTelemetry."""

from __future__ import annotations

from parquetry.serving.search.requests import SearchResponse
from parquetry.telemetry import tracing


def trace_search(response: SearchResponse) -> None:
    """Record an answered search as a span, with milliseconds by stage; its question and its hits are not in it."""
    if not tracing.is_on():
        return
    request = response.request
    labels: dict[str, tracing.Value] = {
        "parquetry.search.mode": request.mode,
        "parquetry.search.level": request.level,
        "parquetry.search.cached": response.cached,
    }
    stages = {} if response.cached else response.ranking.explanation.get("seconds", {})
    counts: dict[str, tracing.Value] = {
        "parquetry.search.k": request.k,
        "parquetry.search.hits": len(response.hits),
        "parquetry.version": response.version,
        **{f"parquetry.search.ms.{name.replace(' ', '_')}": round(1000 * taken, 3) for name, taken in stages.items()},
    }
    tracing.ended_span("parquetry.search", response.seconds, {**labels, **counts})
    tracing.duration("parquetry.search.duration", response.seconds, labels)
