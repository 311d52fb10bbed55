"""Errors as Dify shows them: `{error_code, error_msg}`."""

from __future__ import annotations

from http import HTTPStatus

from fastapi.responses import JSONResponse

from parquetry.serving.http.problems import Problem

BAD_HEADER, NOT_AUTHORIZED, NO_KNOWLEDGE = 1001, 1002, 2001
_HEADER_REASONS = frozenset({"token-missing", "token-foreign", "several-tokens"})
"""reasons of refusals of the header itself, whatever token it may carry"""
_CODES = {
    HTTPStatus.UNAUTHORIZED: NOT_AUTHORIZED,
    HTTPStatus.FORBIDDEN: NOT_AUTHORIZED,
    HTTPStatus.NOT_FOUND: NO_KNOWLEDGE,
}


def dify_error(problem: Problem) -> JSONResponse:
    """Return an error in Dify's form; those for which Dify has no code carry the HTTP status as theirs.

    A request without a valid token is 403: Dify looks for that status, and for no other, when an address and its key
    are registered.

    Source: https://docs.dify.ai/en/use-dify/knowledge/external-knowledge-api
    """
    code = _CODES.get(problem.status, int(problem.status))
    if problem.reason in _HEADER_REASONS:
        code = BAD_HEADER
    status = HTTPStatus.FORBIDDEN if problem.status == HTTPStatus.UNAUTHORIZED else problem.status
    return JSONResponse({"error_code": code, "error_msg": problem.detail}, status, problem.all_headers)
