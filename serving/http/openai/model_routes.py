"""`/v1/models` and `/v1/embeddings`: agents, the corpus's own embedders, and the models of the model service."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError

from parquetry.embed.registry import open_embedder
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotAuthenticated
from parquetry.serving.chat.agents import Agents
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.upstream import Sender, Upstream
from parquetry.serving.http.callers import Parts, SearchCaller
from parquetry.serving.http.openai.passthrough_routes import pass_on
from parquetry.serving.http.openai.sending import (
    ClientGone,
    ModelService,
    gone_answer,
    json_object,
    sender_of,
    unless_gone,
)
from parquetry.serving.http.problems import Problem, invalid_request
from parquetry.settings.hub import model_name
from parquetry.settings.sections import Settings

router = APIRouter(prefix="/v1", tags=["models"], include_in_schema=False)
MOST_INPUTS = 2048
_OWNER = "parquetry"
_MOST_LIST_BYTES = 16 * 1024 * 1024
_WITHOUT_LIST = (404, 405, 501)
"""statuses of model services that have no list of models"""
_THREADS = CapacityLimiter(4)
_PAID = "openai:"
"""embedders that are services, with a key of the operator"""


@router.get("/models")
async def list_models(request: Request, caller: SearchCaller, parts: Parts, upstream: ModelService) -> Response:
    """List agents first, then the models of the model service, then the corpus's embedders.

    A model service that fails is an error: without it, agents answer nothing either, and clients keep the list.
    """
    agents: Agents = request.app.state.agents
    own = [each.name for each in agents.visible(caller)]
    theirs: list[dict[str, Any]] = []
    if upstream.is_configured:
        sender = sender_of(request, caller, upstream)
        try:
            theirs = await unless_gone(request, models_of(upstream, sender))
        except ClientGone:
            return gone_answer()
    known = {*own, *(each["id"] for each in theirs)}
    embedders = [name for name in embedders_for(parts.settings, caller) if name not in known]
    data = [*map(_model, own), *(each for each in theirs if each["id"] not in own), *map(_model, embedders)]
    return JSONResponse({"object": "list", "data": data})


async def models_of(upstream: Upstream, sender: Sender) -> list[dict[str, Any]]:
    """Return the models of the model service; none if it has no list.

    Raises:
        UpstreamFailed: it failed.
    """
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    answer = await upstream.send("GET", "models", sender, headers=headers)
    if answer.status in _WITHOUT_LIST:
        answer.close()
        return []
    if answer.status != 200:
        raise await answer.refused(sender)
    try:
        value = json.loads(await answer.read(_MOST_LIST_BYTES))
    except (ValueError, RecursionError):
        value = None
    finally:
        answer.close()
    data = value.get("data") if isinstance(value, dict) else ()
    # Ollama says null for none.
    if not isinstance(value, dict) or not isinstance(data or [], list):
        raise UpstreamFailed("upstream-broken", "the model service sent no list of models")
    return [each for each in data or [] if isinstance(each, dict) and isinstance(each.get("id"), str)]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": _OWNER}


@router.get("/models/{model:path}")
async def get_model(
    request: Request, model: str, caller: SearchCaller, parts: Parts, upstream: ModelService
) -> Response:
    """Return an agent or embedder of this service, or ask the model service."""
    agents: Agents = request.app.state.agents
    if agents.find(model, caller) is not None or model in embedders_for(parts.settings, caller):
        return JSONResponse(_model(model))
    if not upstream.is_configured:
        raise _no_such_model(model)
    return await pass_on(request, caller, upstream)


def _no_such_model(model: str) -> Problem:
    return Problem(
        404,
        "no-such-model",
        f"the model {model[:80]!r} does not exist",
        param="model",
        told={"code": "model_not_found"},
    )


class EmbeddingsRequest(BaseModel):
    """A request for vectors; what else it has is ignored, as OpenAI does."""

    model: str = Field(min_length=1)
    input: str | list[str] | list[int] | list[list[int]]
    dimensions: int | None = Field(None, ge=1)
    encoding_format: Literal["float", "base64"] = "float"


@router.post("/embeddings")
async def create_embeddings(request: Request, caller: SearchCaller, parts: Parts, upstream: ModelService) -> Response:
    """Return vectors by an embedder of the corpus under its own name; other models are the model service's."""
    given = await json_object(request)
    model = given.get("model")
    embedder = embedders_for(parts.settings, caller).get(model) if isinstance(model, str) else None
    if embedder is None:
        if upstream.is_configured:
            return await pass_on(request, caller, upstream, await request.body())
        raise _no_such_model(str(model))
    if embedder.startswith(_PAID) and caller.token_id is None and not caller.operator:
        raise NotAuthenticated("token-missing", "this model needs a token of this service, as Authorization: Bearer")
    try:
        asked = EmbeddingsRequest.model_validate(given)
    except ValidationError as error:
        raise invalid_request([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    texts = _texts(asked)
    return JSONResponse(await run_sync(_embedded, parts.settings, embedder, asked, texts, limiter=_THREADS))


def embedders_for(settings: Settings, principal: Principal) -> dict[str, str]:
    """Return the embedders of the namespaces that a principal sees: name as a model -> name in the settings."""
    names = [settings.corpus.embedder, *(each.embedder for each in settings.namespace if principal.sees(each.name))]
    # The place of a model's folder is nobody's business.
    return {model_name(name): name for name in names}


def _texts(asked: EmbeddingsRequest) -> list[str]:
    given = [asked.input] if isinstance(asked.input, str) else asked.input
    texts = [each for each in given if isinstance(each, str)]
    if len(texts) < len(given):
        raise _unusable("input: this model takes texts, not numbers of tokens")
    if not texts or len(texts) > MOST_INPUTS:
        raise _unusable(f"input: 1 to {MOST_INPUTS:,} texts are taken at once")
    empty = next((place for place, text in enumerate(texts) if not text.strip()), None)
    if empty is not None:
        raise _unusable(f"input: text {empty} is empty")
    return [text.encode("utf-8", "replace").decode() for text in texts]


def _unusable(detail: str, param: str = "input") -> Problem:
    return Problem(400, "invalid-value", detail, param=param)


def _embedded(settings: Settings, name: str, asked: EmbeddingsRequest, texts: list[str]) -> Mapping[str, Any]:
    embedder = open_embedder(name, settings.embedding, settings.hub)
    if asked.dimensions not in (None, embedder.dimension):
        raise _unusable(f"dimensions: vectors of this model have {embedder.dimension}", "dimensions")
    found = embedder.embed(texts)
    if found.refused:
        place, reason = next(iter(found.refused.items()))
        raise _unusable(f"input: text {place} has no vector: {reason}")
    tokens = int(sum(found.token_counts))
    data = []
    for place, vector in enumerate(found.vectors):
        shown: Any = vector.tolist()
        if asked.encoding_format == "base64":
            shown = base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode("ascii")
        data.append({"object": "embedding", "index": place, "embedding": shown})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": asked.model, "usage": usage}
