"""Prometheus metrics of the service, summed over its processes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from http import HTTPMethod
from pathlib import Path
from time import perf_counter

import psutil
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquetry.serving.service.supervising import MULTIPROCESS

PROVIDER, STORE_TYPE = "parquetry", "duckdb"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
_METHODS = frozenset(HTTPMethod)
_SCORES = tuple(tenth / 10 for tenth in range(1, 11))


class Metrics:
    """The metrics of one application.

    Args:
        registry: collects them; None for one of its own, for a process that answers alone.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry or CollectorRegistry()
        own = self._registry
        self.chunks = Counter(
            "parquetry_knowledge_chunks_retrieved", "Chunks in answers.", ("provider", "store_type"), registry=own
        )
        self.scores = Histogram(
            "parquetry_knowledge_retrieval_score",
            "Calibrated relevance of the chunks in answers.",
            ("provider", "store_type"),
            buckets=_SCORES,
            registry=own,
        )
        self.documents = Counter(
            "parquetry_knowledge_documents_ingested", "Documents added.", ("provider", "store_type"), registry=own
        )
        self.tokens = Counter(
            "parquetry_knowledge_query_tokens", "Tokens of questions.", ("provider", "kind"), registry=own
        )
        self.requests = Counter("parquetry_http_requests", "Requests.", ("method", "route", "status"), registry=own)
        self.seconds = Histogram(
            "parquetry_http_request_seconds", "Time of requests.", ("method", "route"), buckets=_SECONDS, registry=own
        )
        self.version = Gauge(
            "parquetry_corpus_version", "Version that is answered from.", multiprocess_mode="livemin", registry=own
        )

    def retrieved(self, scores: Iterable[float | None]) -> None:
        """Count the chunks of an answer."""
        known = list(scores)
        self.chunks.labels(PROVIDER, STORE_TYPE).inc(len(known))
        relevance = self.scores.labels(PROVIDER, STORE_TYPE)
        for score in known:
            if score is not None:
                relevance.observe(score)

    def ingested(self, documents: int) -> None:
        """Count added documents."""
        self.documents.labels(PROVIDER, STORE_TYPE).inc(documents)

    def page(self) -> Response:
        """Return all metrics in Prometheus' text format."""
        registry = self._registry
        if folder := os.environ.get(MULTIPROCESS):
            _drop_dead(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _drop_dead(folder: Path) -> None:
    """Drop the state of workers that ended; what they counted stays."""
    for file in folder.glob("gauge_live*_*.db"):
        number = file.stem.rpartition("_")[2]
        if number.isdigit() and not psutil.pid_exists(int(number)):
            file.unlink(missing_ok=True)


class RequestMetrics:
    """Middleware that counts and times requests by route.

    Args:
        app: the application.
        owner: the application whose state has the metrics.
    """

    def __init__(self, app: ASGIApp, owner: FastAPI) -> None:
        self._app, self._owner = app, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            metrics: Metrics = self._owner.state.metrics
            # The pattern of the route, and never a path: paths are without bound.
            route = getattr(scope.get("route"), "path", "none")
            # Methods are any word that a stranger sends.
            method = scope["method"] if scope["method"] in _METHODS else "other"
            metrics.requests.labels(method, route, status).inc()
            metrics.seconds.labels(method, route).observe(perf_counter() - started)
