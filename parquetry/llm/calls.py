"""Calls to an OpenAI-compatible service: translation of errors, and retries of a call."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pydantic import SecretStr

from parquetry.errors import BrokenDocument, ParquetryError, ServiceRefused, SettingsError, TransientError
from parquetry.known_secrets import announce
from parquetry.llm.connections import connections
from parquetry.masking import excerpt
from parquetry.net.response_headers import retry_after
from parquetry.retrying import Backoff, retried

if TYPE_CHECKING:
    import openai

T = TypeVar("T")

INPUT_REJECTED = "input-rejected"
"""reason of a BrokenDocument for an input that the service will never accept"""
BAD_REPLY = "bad-reply"
"""reason of an error about an unusable reply"""
REPLY_CUT = "reply-cut"
"""reason of an error about a reply that was truncated at its token limit"""

LONGEST_WAIT = 60.0
"""upper bound of the seconds between two tries, whatever the service asks for"""
_BACKOFF = Backoff(first=0.5, longest=LONGEST_WAIT, longest_asked=LONGEST_WAIT, jitter=0.25)

_OFFICIAL_URL = "https://api.openai.com/v1"
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_INPUT_STATUS = {400, 413, 422}
_TRANSIENT_STATUS = {408, 409, 425, 429}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The retry policy: number of tries, and the clock to wait by."""

    attempts: int
    sleep: Callable[[float], None] = time.sleep
    """waits that many seconds"""
    now: Callable[[], float] = time.time
    """seconds since the epoch, for a `Retry-After` that is a date"""
    spread: Callable[[], float] = random.random
    """0 to 1"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and credentials of a service."""

    url: str
    key: str = field(repr=False)
    variable: str = "OPENAI_API_KEY"
    """environment variable of the key, for messages"""

    @property
    def official(self) -> bool:
        """Return True if this is OpenAI itself, so that its prices and models apply."""
        return self.url.rstrip("/") == _OFFICIAL_URL


def endpoint(base_url: str | None, api_key: SecretStr | None, section: str) -> Endpoint:
    """Return the endpoint that the settings and the environment name.

    Args:
        base_url: from the settings; None uses `OPENAI_BASE_URL`, or OpenAI itself if that is unset.
        api_key: from the settings; None uses `OPENAI_API_KEY`.
        section: settings section, for the error message.

    Raises:
        SettingsError: OpenAI itself is called without a key. Other services may need none.
    """
    url = base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL_URL
    key = (api_key.get_secret_value() if api_key else "") or os.environ.get("OPENAI_API_KEY", "")
    announce(key)
    found = Endpoint(url, key or "none")
    if found.official and not key:
        raise SettingsError(
            f"no API key for {url}: set the environment variable OPENAI_API_KEY, "
            f"or {section}.base_url to a service that needs none"
        )
    return found


def open_client(where: Endpoint, timeout_seconds: float) -> openai.OpenAI:
    """Return a client that never retries by itself."""
    import openai

    client = openai.OpenAI(
        base_url=where.url,
        api_key=where.key,
        timeout=timeout_seconds,
        max_retries=0,
        http_client=connections(),
    )
    if not where.official:
        # `OPENAI_ORG_ID` and `OPENAI_PROJECT_ID` of the environment are names of OpenAI's, and no others' business.
        client.organization = client.project = None
    return client


def with_retry(call: Callable[[], T], where: Endpoint, retry_policy: RetryPolicy) -> T:
    """Return the result of `call`, retrying while its failure is transient.

    Args:
        call: one request through a client of `open_client`.
        where: endpoint, for messages.
        retry_policy: number of tries and clock.

    Raises:
        BrokenDocument: `input-rejected`, the service will never accept this input.
        TransientError: the last try failed too, with a transient error.
        ServiceRefused: the operator has to act.
    """
    import httpx2
    import openai

    def one_try() -> T:
        try:
            return call()
        except openai.APIError as error:
            raise translate_error(error, where, retry_policy.now()) from error
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TransientError(BAD_REPLY, f"{where.url} answered what is no JSON: {error}") from error
        # While a reply is being read, the client passes on the errors of its HTTP library unchanged.
        except httpx2.TimeoutException as error:
            raise TransientError("timeout", f"{where.url} did not answer in time") from error
        except httpx2.HTTPError as error:
            raise TransientError("unreachable", f"{where.url} broke off its reply: {error}") from error

    return retried(
        one_try,
        _BACKOFF,
        worth=lambda error: isinstance(error, TransientError),
        is_last=lambda tries, _: tries >= retry_policy.attempts,
        sleep=retry_policy.sleep,
        spread=retry_policy.spread,
    )


def translate_error(error: openai.APIError, where: Endpoint, now: float) -> ParquetryError:
    """Translate an error of the client into one of Parquetry.

    Args:
        error: as the client raised it.
        where: endpoint, for messages.
        now: seconds since the epoch.
    """
    import openai

    if isinstance(error, openai.APITimeoutError):
        return TransientError("timeout", f"{where.url} did not answer in time")
    if isinstance(error, openai.APIConnectionError) and isinstance(error.__cause__, ParquetryError):
        return error.__cause__
    if isinstance(error, openai.APIConnectionError):
        return TransientError("unreachable", f"{where.url} cannot be reached: {error.__cause__ or error}")
    if not isinstance(error, openai.APIStatusError):
        return TransientError(BAD_REPLY, f"{where.url} answered something that is not a reply: {error.message}")
    return _translate_status(error, where, now)


def _translate_status(error: openai.APIStatusError, where: Endpoint, now: float) -> ParquetryError:
    status, said = error.status_code, service_message(error)
    if status == 402 or {error.code, error.type} & _NO_MONEY:
        return ServiceRefused(f"the account at {where.url} has no quota left; top it up, then run again ({said})")
    if status in {401, 403}:
        return ServiceRefused(f"{where.url} does not let this API key in; check {where.variable} ({status}: {said})")
    if status in _INPUT_STATUS:
        return BrokenDocument(INPUT_REJECTED, f"the service refuses this text ({status}: {said})")
    if status in _TRANSIENT_STATUS or status >= 500:
        reason = "rate-limited" if status == 429 else "service-failed"
        return TransientError(
            reason, f"{where.url} answered {status}: {said}", retry_after(error.response.headers, now)
        )
    if 300 <= status < 400:
        target = excerpt(error.response.headers.get("Location", "nowhere"), 300)
        return ServiceRefused(
            f"{where.url} answered {status}, a redirect to {target}, which is not followed: texts go to no server that "
            "the settings do not name; set base_url to the address that answers"
        )
    return ServiceRefused(f"{where.url} answered {status}: {said}; check base_url and the model's name")


def service_message(error: openai.APIStatusError) -> str:
    """Return what a service says of an error, in one line."""
    body = error.body
    message = body.get("message") or body.get("detail") if isinstance(body, dict) else body
    return excerpt(" ".join(str(message or error.message).split()), 300)
