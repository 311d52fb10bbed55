"""All routes of OpenAI's dialect, in the order in which they are tried."""

from __future__ import annotations

from fastapi import FastAPI

from parquetry.serving.chat.agents import Agents
from parquetry.serving.http.openai import chat_routes, model_routes, passthrough_routes, response_routes
from parquetry.settings.sections import Settings


def add_openai_routes(app: FastAPI, settings: Settings) -> None:
    """Add the routes of chats, responses and models.

    They stand first: routes are tried in order, and chats would try those of all other parts.

    Raises:
        SettingsError: an agent is not valid.
    """
    app.state.agents = Agents(settings)
    for routes in (chat_routes, response_routes, model_routes):
        app.include_router(routes.router)


def add_passthrough(app: FastAPI) -> None:
    """Add the route of all paths below `/v1` that no other has: they go on to the model service."""
    app.include_router(passthrough_routes.router)
