"""The page of chats over the corpus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from parquetry.serving.http.callers import SearchCaller
from parquetry.serving.http.dashboard.html import page
from parquetry.serving.http.dashboard.paths import ASK
from parquetry.serving.http.openai.sending import ModelService

router = APIRouter(include_in_schema=False)


@router.get(ASK)
def show_ask(request: Request, _: SearchCaller, upstream: ModelService) -> Response:
    """Say what to set for chats."""
    return page(request, "ask.html", configured=upstream.is_configured)
