"""Errors of the service as `application/problem+json` (RFC 9457): `title`, `detail` that says what to do, `reason`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as BaseHTTPException

from parquetry.errors import (
    BudgetReached,
    DocumentError,
    OutageError,
    ParquetryError,
    PublishConflict,
    RefusedError,
    ServiceRefused,
    SettingsError,
    StorageError,
    TransientError,
)
from parquetry.masking import masked
from parquetry.serving.service.follower import NotReady

log = logging.getLogger("parquetry")
NOT_READY = "Knowledge service is not available"
MEDIA_TYPE = "application/problem+json"
_LONGEST = 80
"""characters of a value that a message repeats"""
_SECONDS = {HTTPStatus.SERVICE_UNAVAILABLE: "2", HTTPStatus.TOO_MANY_REQUESTS: "1"}
"""Retry-After of statuses that ask for another try"""


class Problem(HTTPException):
    """An answer that is an error.

    Args:
        status: HTTP status.
        reason: short code in kebab-case, stable for programs.
        detail: one sentence for people: what is wrong and what to do.
        title: summary; None for the status's own phrase.
        headers: headers of the answer.
        more: members beside the standard ones.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        detail: str,
        *,
        title: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        # FastAPI passes on its own kind of exception, and hides any other that is raised while a body arrives.
        super().__init__(status, masked(detail), dict(headers or {}))
        self.status = HTTPStatus(status)
        self.reason = reason
        self.title = title or self.status.phrase
        self.more = dict(more or {})

    def response(self) -> JSONResponse:
        """Return the answer."""
        headers = dict(self.headers or {})
        if self.status in _SECONDS:
            headers = {"Retry-After": _SECONDS[self.status], **headers}
        content = {
            "type": "about:blank",
            "title": self.title,
            "status": int(self.status),
            "detail": self.detail,
            "reason": self.reason,
            **self.more,
        }
        return JSONResponse(content, self.status, headers, MEDIA_TYPE)


def not_found(what: str) -> Problem:
    """Return the answer for what does not exist, or not for this caller."""
    return Problem(404, "not-found", f"{what} does not exist")


def problem_of(error: BaseException) -> Problem:
    """Return the answer for an error of the program."""
    match error:
        case Problem():
            return error
        case NotReady():
            return Problem(503, "not-ready", str(error), title=NOT_READY)
        case DocumentError():
            return Problem(422, error.reason, error.detail)
        case ServiceRefused() | OutageError():
            return Problem(502, "service-failed", str(error))
        case BudgetReached() | RefusedError():
            return Problem(409, "refused", str(error))
        case SettingsError():
            return Problem(422, "invalid-request", str(error))
        case TransientError():
            return Problem(503, error.reason, error.detail)
        case PublishConflict():
            return Problem(503, "conflict", str(error))
        case StorageError():
            return Problem(503, "storage-failed", str(error))
        case ParquetryError():
            return Problem(500, "failed", str(error))
        case _:
            log.error("a request failed: %s", type(error).__name__, exc_info=error)
            return Problem(
                500, "unexpected", f"the request failed ({type(error).__name__}); the service's log has more"
            )


def invalid_request(errors: Sequence[Any]) -> Problem:
    """Return the answer for a request that does not fit its schema: one line for each fault."""
    lines = [f"{_place(each['loc'])}: {_fault(each)}" for each in errors[:10]]
    return Problem(422, "invalid-request", "; ".join(lines) or "the request cannot be read")


def _place(location: Sequence[Any]) -> str:
    return ".".join(str(each)[:_LONGEST] for each in location) or "body"


def _fault(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown field"
    # Values are not repeated: they may be secrets, or long.
    return str(error["msg"]).removeprefix("Value error, ")[:300]


def add_handlers(app: FastAPI) -> None:
    """Answer every error of an application as a problem."""

    async def known(_: Request, error: Exception) -> JSONResponse:
        return problem_of(error).response()

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return invalid_request(error.errors()).response()

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, BaseHTTPException)
        reason = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        return Problem(error.status_code, reason, str(error.detail), headers=error.headers).response()

    app.add_exception_handler(Problem, known)
    app.add_exception_handler(ParquetryError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(BaseHTTPException, http)
    app.add_exception_handler(Exception, known)
