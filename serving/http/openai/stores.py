"""Files, uploads in parts and vector stores in OpenAI's dialect."""

from __future__ import annotations

from fastapi import FastAPI

from parquetry.serving.http.openai import file_routes, store_file_routes, store_routes, upload_routes


def add_store_routes(app: FastAPI) -> None:
    """Add their routes, which win over what goes on to a model service."""
    for routes in (file_routes, upload_routes, store_routes, store_file_routes):
        app.include_router(routes.router)
