"""Dialects of the service: which paths speak which, and what differs for all requests of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from parquetry.errors import ParquetryError
from parquetry.serving.http.dashboard.errors import dashboard_error, sign_in_page
from parquetry.serving.http.dashboard.paths import PATHS
from parquetry.serving.http.dify.errors import dify_error
from parquetry.serving.http.methods import no_such_method, no_such_route
from parquetry.serving.http.openai.errors import openai_error
from parquetry.serving.http.problems import Problem, known_problem


@dataclass(frozen=True, slots=True)
class WireDialect:
    """Properties that all requests of a dialect share."""

    paths: tuple[str, ...]
    """paths, with everything below them"""
    error: Callable[[Problem], Response]
    """form of its errors"""
    foreign_bearers: bool = False
    """True if a bearer may be a key of another service: the caller is whom `X-Parquetry-Token` names, or anonymous"""
    sign_in: Callable[[Scope, Problem], Response] | None = None
    """page in the place of one that needs a token, for browsers, whose cookie names their session; None where cookies
    mean nothing"""


_OF_ROUTER = {404: no_such_route, 405: no_such_method}
"""errors that the web framework raises before any route is reached"""
_OWN = WireDialect((), Problem.response)
_DIALECTS = (
    WireDialect(("/v1",), openai_error, foreign_bearers=True),
    WireDialect(("/retrieval",), dify_error),
    WireDialect(PATHS, dashboard_error, sign_in=sign_in_page),
)


def dialect_of(path: str) -> WireDialect:
    """Return the dialect of a path; the service's own unless another one has it."""
    for dialect in _DIALECTS:
        if any(path == each or path.startswith(f"{each}/") for each in dialect.paths):
            return dialect
    return _OWN


def error_response(path: str, error: Exception) -> Response:
    """Return the answer to a request that failed, in the form of its dialect."""
    return dialect_of(path).error(known_problem(error))


def add_handlers(app: FastAPI) -> None:
    """Answer the known errors of an application in the form of each dialect; `Containment` answers the others."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and not isinstance(error, Problem) and error.status_code in _OF_ROUTER:
            error = _OF_ROUTER[error.status_code](request)
        return error_response(request.url.path, error)

    for kind in (Problem, ParquetryError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)
