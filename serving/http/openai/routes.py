"""All routes of OpenAI's dialect, in the order in which they are tried."""

from __future__ import annotations

from fastapi import FastAPI

from parquetry.serving.chat.agents import Agents
from parquetry.serving.http.openai import chat_routes, model_routes, passthrough_routes, response_routes
from parquetry.settings.sections import Settings


def add_openai_routes(app: FastAPI, settings: Settings) -> None:
    """Add the routes below `/v1`; paths that none of them has go on to the model service.

    Raises:
        SettingsError: an agent is not valid.
    """
    app.state.agents = Agents(settings)
    for routes in (chat_routes, response_routes, model_routes, passthrough_routes):
        app.include_router(routes.router)
