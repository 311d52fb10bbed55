"""Failures of the model service behind the chat proxy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from parquetry.errors import ParquetryError
from parquetry.masking import excerpt

_LONGEST = 2000
"""characters of a message of the model service"""
_KEY_REFUSED = (401, 403)
_PLAIN = re.compile(r"[\x20-\x7e]{1,64}")
"""values of headers that are passed on"""


class UpstreamFailed(ParquetryError):
    """The model service failed, or refused a request.

    Args:
        reason: short code in kebab-case.
        detail: one sentence for people.
        status: HTTP status of the answer.
        told: `message`, `type`, `param` and `code` as the model service gave them; None if it gave none.
        retry_after: header `Retry-After` of the model service.
    """

    reason: str

    def __init__(
        self,
        reason: str,
        detail: str,
        status: int = 502,
        told: Mapping[str, Any] | None = None,
        retry_after: str | None = None,
    ) -> None:
        super().__init__(reason, detail, status, told, retry_after)
        self.reason, self.detail = str(self.args[0]), str(self.args[1])
        self.status, self.told, self.retry_after = status, told, retry_after

    def __str__(self) -> str:
        return self.detail


def refusal(status: int, content: bytes, *, own_key: bool, retry_after: str | None = None) -> UpstreamFailed:
    """Return the failure for an answer of the model service that is an error.

    Args:
        status: its HTTP status.
        content: its body.
        own_key: the request carried the key of this service: the caller can do nothing about a wrong one.
        retry_after: its header `Retry-After`.
    """
    told = told_in(content)
    detail = excerpt(told["message"], _LONGEST)
    if own_key and status in _KEY_REFUSED:
        return UpstreamFailed(
            "upstream-refused",
            f"the model service refuses the key of this service ({status}); its operator has to set upstream.api_key",
        )
    if status < 300:
        return UpstreamFailed("upstream-broken", f"the model service answers with the unusual status {status}")
    if status < 400:
        return UpstreamFailed(
            "upstream-redirected",
            f"the model service answers with a redirect ({status}), which is not followed; set upstream.base_url to "
            "where it leads",
        )
    again = retry_after if retry_after is not None and _PLAIN.fullmatch(retry_after) else None
    return UpstreamFailed("upstream-failed", detail, _known(status), {**told, "message": detail}, again)


def _known(status: int) -> int:
    """Return a status that HTTP knows; the services of some vendors have others."""
    try:
        return HTTPStatus(status)
    except ValueError:
        return HTTPStatus.BAD_REQUEST if status < 500 else HTTPStatus.BAD_GATEWAY


def told_in(content: bytes) -> dict[str, Any]:
    """Return `message`, `type`, `param` and `code` of an error in any of the forms that model services use."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    error = value.get("error", value) if isinstance(value, dict) else None
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {"message": content[:_LONGEST].decode("utf-8", "replace").strip() or "the model service gave no reason"}
    message = next((error[name] for name in ("message", "detail", "error") if isinstance(error.get(name), str)), None)
    found = {"message": message or json.dumps(error)[:_LONGEST]}
    for name in ("type", "param", "code"):
        if isinstance(error.get(name), str | int):
            found[name] = excerpt(error[name], _LONGEST) if isinstance(error[name], str) else error[name]
    return found
