"""Errors of the service as `application/problem+json` (RFC 9457): `title`, `detail` that says what to do, `reason`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as BaseHTTPException

from parquetry.errors import (
    DocumentError,
    OutageError,
    PagesGone,
    ParquetryError,
    PublishConflict,
    RefusedError,
    ServiceRefused,
    SettingsError,
    StorageError,
    TransientError,
)
from parquetry.masking import masked
from parquetry.serving.access.refusals import AccessRefused, RateLimited, UnusableParameter
from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.service.follower import NotReady

log = logging.getLogger("parquetry")
NOT_READY = "Knowledge service is not available"
MEDIA_TYPE = "application/problem+json"
_NO_OBJECT = frozenset({"model_attributes_type", "model_type", "dict_type"})
"""errors of a body that is no object, or was not read as JSON"""
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
        param: the field of the request that is at fault, for dialects that name it.
        told: members of an error in OpenAI's form, as a model service gave them; for OpenAI's dialect.
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
        param: str | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        # FastAPI passes on its own kind of exception, and hides any other that is raised while a body arrives.
        super().__init__(status, masked(detail), dict(headers or {}))
        self.status = HTTPStatus(status)
        self.reason = reason
        self.title = title or self.status.phrase
        self.more = dict(more or {})
        self.param = param
        self.told = dict(told or {})

    @property
    def all_headers(self) -> dict[str, str]:
        """Headers of the answer, with `Retry-After` where another try may help."""
        again = {"Retry-After": _SECONDS[self.status]} if self.status in _SECONDS else {}
        return {**again, **(self.headers or {})}

    def response(self) -> JSONResponse:
        """Return the answer as `application/problem+json`."""
        content = {
            "type": "about:blank",
            "title": self.title,
            "status": int(self.status),
            "detail": self.detail,
            "reason": self.reason,
            **self.more,
        }
        return JSONResponse(content, self.status, self.all_headers, MEDIA_TYPE)


_STATUSES: tuple[tuple[tuple[type[ParquetryError], ...], int, str], ...] = (
    ((NotReady,), 503, "not-ready"),
    ((ServiceRefused, OutageError), 502, "service-failed"),
    ((RefusedError,), 409, "refused"),
    ((PagesGone,), 410, "pages-gone"),
    ((SettingsError,), 422, "invalid-request"),
    ((DocumentError,), 422, "unreadable"),
    ((TransientError,), 503, "unavailable"),
    ((PublishConflict,), 503, "conflict"),
    ((StorageError,), 503, "storage-failed"),
    ((ParquetryError,), 500, "failed"),
)
"""kinds of errors -> status and reason, the first that fits; an error's own reason is the better one"""


def problem_of(error: BaseException) -> Problem:
    """Return the answer for an error of the program."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, AccessRefused):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == HTTPStatus.UNAUTHORIZED else {}
        if isinstance(error, RateLimited):
            headers = {"Retry-After": str(error.retry_after)}
        param = error.param if isinstance(error, UnusableParameter) else None
        return Problem(error.status, error.reason, error.detail, title=error.title, headers=headers, param=param)
    if isinstance(error, UpstreamFailed):
        headers = {} if error.retry_after is None else {"Retry-After": error.retry_after}
        return Problem(error.status, error.reason, error.detail, headers=headers, told=error.told)
    for kinds, status, reason in _STATUSES:
        if isinstance(error, kinds):
            title = NOT_READY if isinstance(error, NotReady) else None
            detail: str = getattr(error, "detail", None) or str(error)
            return Problem(status, error.reason or reason, detail, title=title)
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    what = f"the request failed ({type(error).__name__}); the log of the service has more"
    return Problem(500, "unexpected", what)


def known_problem(error: Exception) -> Problem:
    """Return the answer for an error of the program or of the web framework."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return invalid_request(error.errors())
        case BaseHTTPException():
            reason = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
            return Problem(error.status_code, reason, str(error.detail), headers=error.headers)
        case _:
            return problem_of(error)


def invalid_request(errors: Sequence[Any]) -> Problem:
    """Return the answer for a request that does not fit its schema: one line for each fault."""
    lines = [f"{_place(each['loc'])}: {_fault(each)}" for each in errors[:10]]
    param = next((".".join(str(part)[:_LONGEST] for part in each["loc"][1:]) for each in errors), None)
    return Problem(422, "invalid-request", "; ".join(lines) or "the request cannot be read", param=param or None)


def _place(location: Sequence[Any]) -> str:
    return ".".join(str(each)[:_LONGEST] for each in location) or "body"


def _fault(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown field"
    if error["type"] in _NO_OBJECT and tuple(error["loc"]) == ("body",):
        return "send a JSON object, with Content-Type: application/json"
    # Values are not repeated: they may be secrets, or long.
    return str(error["msg"]).removeprefix("Value error, ")[:300]
