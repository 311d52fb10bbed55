"""Refusals of a request: each has the status of the answer, a stable reason and a detail for the caller.

The details say the same for what does not exist and for what the caller may not see.
"""

from __future__ import annotations

from typing import ClassVar

from parquetry.errors import RefusedError


class AccessRefused(RefusedError):
    """A request that its caller may not make.

    Args:
        reason: short code in kebab-case, stable for clients and tests.
        detail: one sentence with the remedy.
    """

    status: ClassVar[int] = 403
    """HTTP status of the answer"""
    title: ClassVar[str] = "Forbidden"
    reason: str

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail: str = str(self.args[1])

    def __str__(self) -> str:
        return self.detail


class NotAuthenticated(AccessRefused):
    """The request carries no valid token where one is required."""

    status = 401
    title = "Unauthorized"


class Forbidden(AccessRefused):
    """The token is valid, but lacks the right for this."""


class NotVisible(AccessRefused):
    """The requested thing does not exist for the caller."""

    status = 404
    title = "Not Found"


class UnusableAccess(AccessRefused):
    """The parts of a request that say who may see a document contradict each other, or are incomplete."""

    status = 422
    title = "Unprocessable Content"


class UnusableParameter(AccessRefused):
    """A parameter of the request has a value that cannot be used.

    Args:
        param: place of the parameter in the request, for dialects that name it; None for the whole body.
    """

    status = 422
    title = "Unprocessable Content"

    def __init__(self, reason: str, detail: str, param: str | None) -> None:
        super().__init__(reason, detail)
        self.param = param

    def __reduce__(self) -> tuple[type[UnusableParameter], tuple[str, str, str | None]]:
        return type(self), (self.reason, self.detail, self.param)


class RateLimited(AccessRefused):
    """The caller sends too many requests.

    Args:
        retry_after: whole seconds until the next request is admitted, for the header `Retry-After`.
    """

    status = 429
    title = "Too Many Requests"

    def __init__(self, retry_after: int) -> None:
        super().__init__("rate-limited", f"too many requests; try again in {retry_after} s")
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[type[RateLimited], tuple[int]]:
        return type(self), (self.retry_after,)
