"""Errors in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

from parquetry.serving.http.problems import Problem

_TYPES = {
    HTTPStatus.UNAUTHORIZED: ("invalid_request_error", "invalid_api_key"),
    HTTPStatus.FORBIDDEN: ("invalid_request_error", "insufficient_permissions"),
    HTTPStatus.NOT_FOUND: ("invalid_request_error", "not_found"),
    HTTPStatus.TOO_MANY_REQUESTS: ("requests", "rate_limit_exceeded"),
}
"""status -> type and code that OpenAI's clients know; other codes are our reasons"""

_TEXT, _TEXT_OR_NULL = {"type": "string"}, {"type": ["string", "null"]}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {"message": _TEXT, "type": _TEXT, "param": _TEXT_OR_NULL, "code": _TEXT_OR_NULL},
        }
    },
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": "Error", "content": {"application/json": {"schema": _ERROR}}} for status in ("4XX", "5XX")
}
"""errors of the routes of the dialect, for the description of the API"""


def openai_error(problem: Problem) -> JSONResponse:
    """Return an error as OpenAI answers it: a request that does not fit is 400, not 422."""
    return JSONResponse({"error": error_object(problem)}, _status(problem), problem.all_headers)


def error_object(problem: Problem) -> dict[str, Any]:
    """Return the value of `error` in an answer or in an event of a stream."""
    status = _status(problem)
    kind = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    kind, code = _TYPES.get(status, (kind, problem.reason.replace("-", "_")))
    return {"message": problem.detail, "type": kind, "param": problem.param, "code": code, **problem.told}


def _status(problem: Problem) -> HTTPStatus:
    return HTTPStatus.BAD_REQUEST if problem.status == HTTPStatus.UNPROCESSABLE_ENTITY else problem.status
