"""Requests to a Parquetry service: a token, a time limit, tries again for reads, and our own errors for its answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from http import HTTPStatus
from time import sleep
from typing import Any

import httpx

from parquetry.errors import (
    BrokenDocument,
    DiskFull,
    IndexNotWritten,
    OutageError,
    PagesGone,
    ParquetryError,
    PublishConflict,
    RefusedError,
    ServiceRefused,
    SettingsError,
    SkippedDocument,
    StorageError,
    TransientError,
)
from parquetry.known_secrets import announce
from parquetry.net.response_headers import retry_after

ATTEMPTS = 4
"""tries of a request that only reads"""
_LONGEST_PAUSE = 10.0
"""seconds; a service that asks for more is not waited for"""
_AGAIN = frozenset({429, 502, 503, 504})
"""statuses of answers that may be others a moment later"""
_CONNECT_SECONDS = 10.0
_KINDS: Mapping[str, type[ParquetryError]] = {
    **dict.fromkeys(("outage", "service-failed"), OutageError),
    **dict.fromkeys(("refused", "budget"), RefusedError),
    "settings": SettingsError,
    "disk-full": DiskFull,
    "index-not-written": IndexNotWritten,
    "conflict": PublishConflict,
    "pages-gone": PagesGone,
    **dict.fromkeys(("storage", "storage-failed", "not-followed", "internal", "unexpected"), StorageError),
}
"""reason of a failed run, or of an answer -> kind of error"""
_SKIPPED = frozenset({"unsupported-type", "empty", "no-text", "too-large"})
"""reasons of documents with nothing to index"""


class ServiceClient:
    """HTTP client of one service. Thread-safe.

    Args:
        address: address of the service, as `http://127.0.0.1:8000`.
        token: token of the service; None for none.
        timeout: seconds that an answer may take.
    """

    def __init__(self, address: str, token: str | None, timeout: float) -> None:
        headers = {"Accept": "application/json"}
        if token is not None:
            announce(token)
            if not token.isascii() or not token.isprintable() or " " in token or not token:
                raise SettingsError("the token is not one of `parquetry token create`; check for spaces and line ends")
            headers["Authorization"] = f"Bearer {token}"
        try:
            url = httpx.URL(address.rstrip("/"))
        except httpx.InvalidURL as error:
            raise SettingsError(f"{address} is not a valid address: {error}") from error
        if not url.host or url.query or url.fragment or url.userinfo:
            raise SettingsError(
                f"{url.copy_with(userinfo=b'')} is not the address of a service; write http://host:port"
            )
        self.address = str(url)
        self._client = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
            # A redirect would hand the token to another place.
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def read(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, json: Any = None) -> Any:
        """Send a request that changes nothing, again if the failure may pass; return the JSON of the answer.

        Raises:
            ParquetryError: the service cannot be reached, or its answer is an error.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._send(method, path, params=params, json=json)
            except TransientError as error:
                pause = error.retry_after
                if pause is None:
                    pause = random.uniform(0.5, 1) * 0.2 * 2**attempt  # noqa: S311 (jitter, no secret)
                if attempt == ATTEMPTS or pause > _LONGEST_PAUSE:
                    raise
                sleep(pause)
        raise AssertionError("the last try returns or raises")

    def write(self, method: str, path: str, **options: Any) -> Any:
        """Send a request that changes something, once; return the JSON of the answer.

        Args:
            method: method of the request.
            path: path below the service's address.
            options: `params`, `json`, `data` and `files` of httpx.

        Raises:
            ParquetryError: as for `read`.
        """
        return self._send(method, path, **options)

    def _send(self, method: str, path: str, **options: Any) -> Any:
        try:
            response = self._client.request(method, path, **options)
        except httpx.TimeoutException as error:
            raise TransientError("timeout", f"the service at {self.address} did not answer in time") from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise TransientError(
                "unreachable",
                f"the service at {self.address} cannot be reached: {error or type(error).__name__}; is it running?",
            ) from error
        if response.is_success:
            return self._json(response)
        raise error_of(response.status_code, self._problem(response), response.headers, self.address)

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise StorageError(f"{self.address} answered without JSON; is it the address of a service?") from error

    def _problem(self, response: httpx.Response) -> Mapping[str, Any]:
        try:
            problem = response.json()
        except ValueError:
            problem = None
        return problem if isinstance(problem, dict) else {}


def error_of(status: int, problem: Mapping[str, Any], headers: Mapping[str, str], address: str) -> ParquetryError:
    """Return the error for an answer that is no success.

    Args:
        status: HTTP status.
        problem: members of its `application/problem+json`; empty if it has none.
        headers: headers of the answer.
        address: address of the service.

    Returns:
        The error, with the `reason` of the answer.
    """
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    detail = str(problem.get("detail") or problem.get("title") or f"{address} answered {status} ({phrase})")
    reason = str(problem.get("reason") or f"http-{status}")
    if reason in _KINDS:
        return run_error(reason, detail)
    if status in _AGAIN:
        return TransientError(reason, detail, retry_after(headers))
    if reason in _SKIPPED or isinstance(problem.get("documents"), list):
        return document_error(reason, detail)
    error: ParquetryError
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        error = ServiceRefused(detail)
    elif 300 <= status < 500 or status == HTTPStatus.NOT_IMPLEMENTED:
        error = SettingsError(detail)
    else:
        error = StorageError(detail)
    error.reason = reason
    return error


def run_error(reason: str, detail: str) -> ParquetryError:
    """Return the error for a run that failed, as the command line would raise it."""
    error = _KINDS.get(reason, ParquetryError)(detail)
    error.reason = reason
    return error


def document_error(reason: str, detail: str) -> ParquetryError:
    """Return the error for a document that was handed in and is not indexed."""
    if reason in _KINDS:
        return run_error(reason, detail)
    return (SkippedDocument if reason in _SKIPPED else BrokenDocument)(reason, detail)
