"""Routes for those who watch over the service: health, readiness, metrics."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from parquetry.serving.http.callers import Parts, requires
from parquetry.serving.http.metrics import Metrics
from parquetry.serving.http.operation_models import Health, Ready
from parquetry.serving.http.problems import NOT_READY, Problem
from parquetry.settings.hub import model_name
from parquetry.settings.sections import Settings

router = APIRouter(tags=["health"])
PUBLIC = frozenset({"/health", "/ready"})
"""routes that need no token; they say nothing about documents"""


@router.get("/health")
async def health(parts: Parts) -> Health:
    """Return the state of the service."""
    followed, problem = parts.follower.version, parts.follower.problem
    status = "degraded" if problem else "ok" if followed is not None else "starting"
    return Health(
        status=status,
        version=version("parquetry"),
        corpus_version=followed,
        read_only=parts.settings.serve.read_only,
        corpus=_name_of(parts.settings.corpus.root),
        models=_models(parts.settings),
        # The reason may name files; those who may not see them learn that there is one.
        detail="the newest version cannot be read; the log of the service says why" if problem else None,
    )


def _name_of(root: str) -> str:
    """Return the last part of a corpus's place; where it is concerns its operator alone."""
    return root.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def _models(settings: Settings) -> dict[str, str | None]:
    search = settings.search
    named = {"embedder": settings.corpus.embedder, "language_model": settings.llm.model, "reranker": search.rerank}
    # The folder of a model is named like the model.
    return {use: name and model_name(name) for use, name in named.items()}


@router.get("/ready")
async def ready(parts: Parts) -> Ready:
    """Return 200 once questions can be answered, 503 until then."""
    if parts.follower.version is None:
        raise Problem(503, "not-ready", "nothing is published yet, or it is being indexed", title=NOT_READY)
    return Ready()


@router.get("/metrics", dependencies=[requires("admin")], response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Return metrics in Prometheus' format."""
    found: Metrics = request.app.state.metrics
    return found.page()
