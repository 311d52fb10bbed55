"""The batch API of OpenAI and services that speak it: requests in a file, answered within a day, at a lower price."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Literal, TypeVar

from parquetry.errors import BrokenDocument, ParquetryError, ServiceRefused, TransientError
from parquetry.llm.calls import BAD_REPLY, Endpoint, RetryPolicy, open_client, service_message, with_retry
from parquetry.llm.connections import replies_up_to
from parquetry.masking import excerpt

WINDOW: Literal["24h"] = "24h"
"""time in which a batch is answered; the only one that services offer"""
MAX_RESULT_BYTES = 8 * 1024**3
"""maximum bytes of a file of results; 50,000 vectors of 3,072 dimensions have 0.9 GB"""
TRANSFER_SECONDS = 3600.0
"""time for sending or receiving a file"""
SUBMIT_SECONDS = 60.0
"""time for a submission; after it the service starts nothing any more"""
REQUEST_ENDED = frozenset({"batch_expired", "batch_cancelled"})
"""codes of requests that the service did not begin, and that cost nothing"""
_NAME = "parquetry"
"""key of the metadata that holds the name of a batch"""
_PAGE = 100
_SKEW_SECONDS = 86_400
"""difference of clocks that is allowed for, in seconds"""
_BLOCK = 1 << 20
_UNDERWAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch as the service tells of it."""

    id: str
    status: str
    created_at: float
    """seconds since the epoch"""
    name: str | None
    """name that the program gave it"""
    files: tuple[str, ...]
    """ids of its files: the requests, the results, the errors"""
    output_file: str | None
    error_file: str | None
    errors: tuple[tuple[str, int | None], ...]
    """reasons for which it was refused as a whole: code and message, and 1-based line"""
    done: int
    total: int

    @property
    def is_underway(self) -> bool:
        """True if the service still works at it."""
        return self.status in _UNDERWAY


@dataclass(frozen=True, slots=True)
class ResultLine:
    """The outcome of one request of a batch."""

    custom_id: str
    body: Any
    """the reply, as the ordinary API gives it; None for a request that failed"""
    code: str
    """reason of its failure; empty for a request that did not fail"""


class BatchService:
    """The batches of an account. Thread-safe.

    Args:
        where: the service.
        retry_policy: number of tries and clock.
        timeout_seconds: for a request, except for the transfer of a file.
    """

    def __init__(self, where: Endpoint, retry_policy: RetryPolicy, timeout_seconds: float) -> None:
        self.where = where
        self._patience = retry_policy
        self._client = open_client(where, timeout_seconds)

    def upload(self, requests: IO[bytes], name: str) -> str:
        """Send the file of a batch, and return its id.

        Raises:
            TransientError: this failed as often as the settings allow.
            ServiceRefused: the service takes no such file.
        """
        client = self._client.with_options(timeout=TRANSFER_SECONDS)

        def post() -> str:
            requests.seek(0)
            reply = client.files.with_raw_response.create(file=(f"{name}.jsonl", requests), purpose="batch")
            return _text(json.loads(reply.content), "id")

        return self._asked(post)

    def submit(self, file_id: str, endpoint: str, name: str) -> RemoteBatch | None:
        """Start a batch.

        Args:
            file_id: its requests.
            endpoint: path that all of them are for, as `/v1/embeddings`.
            name: name by which `find` finds it.

        Returns:
            None if the service gave no clear answer: the batch may have been started.

        Raises:
            TransientError: the service takes no more for now.
            ServiceRefused: it takes no such batch.
        """
        import httpx2
        import openai

        client = self._client.with_options(timeout=SUBMIT_SECONDS)
        chosen: Any = endpoint

        def post() -> RemoteBatch | None:
            try:
                reply = client.batches.with_raw_response.create(
                    input_file_id=file_id, endpoint=chosen, completion_window=WINDOW, metadata={_NAME: name}
                )
                return _batch(json.loads(reply.content))
            except openai.APIStatusError as error:
                if error.status_code >= 500 or error.status_code in {408, 409}:
                    return None
                raise
            except (openai.APIError, httpx2.HTTPError, ValueError, TransientError):
                return None

        started = self._asked(post)
        with suppress(TransientError, ServiceRefused):
            return started or self.find(name, None)
        return None

    def find(self, name: str, since: float | None) -> RemoteBatch | None:
        """Return the batch with a name; None if the service knows none.

        Args:
            name: as in `submit`.
            since: seconds since the epoch before which it was not started; None looks at the newest ones only.
        """
        after: str | None = None
        while True:
            page, has_more = self._page(after)
            for each in page:
                if each.name == name:
                    return each
            if not (page and has_more) or since is None or page[-1].created_at < since - _SKEW_SECONDS:
                return None
            after = page[-1].id

    def _page(self, after: str | None) -> tuple[list[RemoteBatch], bool]:
        batches = self._client.batches.with_raw_response
        more: Any = {} if after is None else {"after": after}

        def get() -> tuple[list[RemoteBatch], bool]:
            reply = json.loads(batches.list(limit=_PAGE, **more).content)
            return [_batch(each) for each in _list(reply, "data")], reply.get("has_more") is True

        return self._asked(get)

    def state(self, batch_id: str) -> RemoteBatch:
        """Return a batch as it is now."""
        batches = self._client.batches.with_raw_response
        return self._asked(lambda: _batch(json.loads(batches.retrieve(batch_id).content)))

    def cancel(self, batch_id: str) -> RemoteBatch:
        """Ask the service to stop a batch; what is done is given out, and charged."""
        batches = self._client.batches.with_raw_response
        return self._asked(lambda: _batch(json.loads(batches.cancel(batch_id).content)))

    def download(self, file_id: str, into: IO[bytes]) -> None:
        """Write a file of results.

        Raises:
            TransientError: this failed as often as the settings allow.
        """
        files = self._client.with_options(timeout=TRANSFER_SECONDS).files.with_streaming_response

        def get() -> None:
            into.seek(0)
            into.truncate()
            with replies_up_to(MAX_RESULT_BYTES), files.content(file_id) as reply:
                for block in reply.iter_bytes(_BLOCK):
                    into.write(block)

        self._asked(get)

    def delete_files(self, file_ids: Sequence[str]) -> None:
        """Delete files at the service; one that cannot be deleted stays."""
        files = self._client.files.with_raw_response
        for file_id in file_ids:
            with suppress(ParquetryError):
                self._asked(partial(files.delete, file_id))

    def _asked(self, call: Callable[[], T]) -> T:
        try:
            return with_retry(call, self.where, self._patience)
        except BrokenDocument as error:
            raise ServiceRefused(f"{self.where.url} refuses a batch: {_refusal(error)}") from error


def result_lines(file: IO[bytes]) -> Iterator[ResultLine]:
    """Yield the outcomes in a file of results or errors; lines that are none are left out."""
    file.seek(0)
    for line in file:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        custom_id = value.get("custom_id") if isinstance(value, dict) else None
        if isinstance(custom_id, str):
            yield _outcome(custom_id, value)


def _outcome(custom_id: str, value: dict[str, Any]) -> ResultLine:
    response, error = value.get("response"), value.get("error")
    if isinstance(error, dict):
        return ResultLine(custom_id, None, excerpt(str(error.get("code") or "failed"), 100))
    if not isinstance(response, dict) or response.get("status_code") != 200:
        status = response.get("status_code") if isinstance(response, dict) else None
        return ResultLine(custom_id, None, excerpt(str(status or "failed"), 100))
    return ResultLine(custom_id, response.get("body"), "")


def _refusal(error: BrokenDocument) -> str:
    import openai

    cause = error.__cause__
    return (
        f"{cause.status_code}: {service_message(cause)}" if isinstance(cause, openai.APIStatusError) else error.detail
    )


def _batch(value: Any) -> RemoteBatch:
    counts = value.get("request_counts") if isinstance(value, dict) else None
    counts = counts if isinstance(counts, dict) else {}
    errors = value.get("errors") if isinstance(value, dict) else None
    metadata = value.get("metadata") if isinstance(value, dict) else None
    files = [value.get(name) for name in ("input_file_id", "output_file_id", "error_file_id")]
    return RemoteBatch(
        _text(value, "id"),
        _text(value, "status"),
        float(value.get("created_at") or 0),
        metadata.get(_NAME) if isinstance(metadata, dict) else None,
        tuple(each for each in files if isinstance(each, str)),
        files[1],
        files[2],
        tuple(_error(each) for each in _list(errors, "data")) if errors else (),
        int(counts.get("completed") or 0),
        int(counts.get("total") or 0),
    )


def _error(value: Any) -> tuple[str, int | None]:
    if not isinstance(value, dict):
        return "failed", None
    line = value.get("line")
    said = excerpt(f"{value.get('code') or 'failed'}: {value.get('message') or ''}", 300)
    return said, line if isinstance(line, int) else None


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found:
        raise TransientError(BAD_REPLY, f"the service sent no {name} but {excerpt(str(value), 200)!r}")
    return found


def _list(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
