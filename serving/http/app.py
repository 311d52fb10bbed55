"""The HTTP application, made anew by each process that answers requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from parquetry.masked_output import guard_output
from parquetry.serving.chat.upstream import Upstream
from parquetry.serving.http import (
    agent_routes,
    gateway_routes,
    health_routes,
    index_routes,
    mcp_routes,
    operation_routes,
)
from parquetry.serving.http.admission import Admission
from parquetry.serving.http.body_limits import BodyLimits, body_limit
from parquetry.serving.http.containment import Containment
from parquetry.serving.http.dashboard.paths import PUBLIC as DASHBOARD_PUBLIC
from parquetry.serving.http.dashboard.routes import add_dashboard
from parquetry.serving.http.dialects import add_handlers
from parquetry.serving.http.dify import routes as dify_routes
from parquetry.serving.http.etags import ETags
from parquetry.serving.http.methods import HeadRequests
from parquetry.serving.http.metrics import Metrics, RequestMetrics
from parquetry.serving.http.openai.routes import add_openai_routes, add_passthrough
from parquetry.serving.http.openai.stores import add_store_routes
from parquetry.serving.http.problems import MEDIA_TYPE
from parquetry.serving.http.request_traces import RequestTraces
from parquetry.serving.service.resources import Resources
from parquetry.serving.state.environment import settings_from_environment
from parquetry.serving.stores.upkeep import Upkeep
from parquetry.settings.sections import Settings
from parquetry.settings.serving import ServeSettings
from parquetry.telemetry.json_logs import log_service
from parquetry.telemetry.tracing import flush, start_tracing

_DESCRIPTION = "Search a corpus, add documents to it, and run it."
_ROUTES = (agent_routes, gateway_routes, operation_routes, mcp_routes, health_routes, index_routes, dify_routes)
_PROBLEM = {
    "description": "Problem (RFC 9457)",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": ["title", "status", "detail", "reason"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "reason": {"type": "string"},
                },
            }
        }
    },
}


def create_app(settings: Settings | None = None) -> FastAPI:
    """Make the application.

    Args:
        settings: settings of the service; None for those that `parquetry serve` hands on in the environment.

    Raises:
        SettingsError: as for `settings_from_environment`.
    """
    guard_output()
    known = settings_from_environment() if settings is None else settings
    if settings is None:
        log_service(known.observability)
    is_traced = start_tracing(known.observability)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.resources = Resources.open(known, app.state.metrics.version.set)
        app.state.resources.start()
        upkeep = Upkeep(app.state.resources)
        if not known.serve.read_only:
            upkeep.start()
        app.state.upstream = Upstream(known.upstream)
        await app.state.upstream.open()
        try:
            async with mcp_routes.mcp_endpoint(app):
                yield
        finally:
            await app.state.upstream.close()
            upkeep.stop()
            app.state.resources.close()
            flush()

    app = FastAPI(
        title="Parquetry",
        version=version("parquetry"),
        description=_DESCRIPTION,
        lifespan=lifespan,
        responses={"4XX": _PROBLEM, "5XX": _PROBLEM},
        docs_url=None,
        redoc_url=None,
    )
    app.state.metrics = Metrics()
    add_handlers(app)
    add_openai_routes(app, known)
    for routes in _ROUTES:
        app.include_router(routes.router)
    add_store_routes(app)
    add_dashboard(app)
    add_passthrough(app)
    _add_middleware(app, known.serve, is_traced=is_traced)
    return app


def _add_middleware(app: FastAPI, serve: ServeSettings, *, is_traced: bool) -> None:
    """Add what every request passes, the innermost first."""
    app.add_middleware(ETags)
    app.add_middleware(HeadRequests)
    app.add_middleware(BodyLimits, limit=partial(body_limit, serve))
    app.add_middleware(Admission, owner=app, public=health_routes.PUBLIC | DASHBOARD_PUBLIC)
    if serve.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=serve.cors_origins, allow_methods=["*"], allow_headers=["*"], max_age=600
        )
    app.add_middleware(Containment)
    app.add_middleware(RequestMetrics, owner=app)
    if is_traced:
        app.add_middleware(RequestTraces)
