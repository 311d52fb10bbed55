"""Reads small objects with obstore, for a fifth of the processor time of s3fs and outside Python's lock.

It is only ever the quicker way: whatever it does not read, s3fs is asked for, which also tells what is wrong.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parquetry.errors import first_line
from parquetry.known_secrets import announce
from parquetry.sources.s3.endpoint import S3Endpoint
from parquetry.sources.s3.read import Read

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Credential, S3Store

log = logging.getLogger("parquetry")
SMALL_BYTES = 256 * 1024
"""largest object that is read so: above, what a request costs matters little"""
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_SECONDS, _CONNECT_SECONDS = timedelta(seconds=60), timedelta(seconds=10)
"""for a whole request, and for its connection"""
_CREDENTIALS_LAST = timedelta(minutes=10)
"""time for which credentials may be kept: those that botocore gives are valid for at least this time"""
_WRONG_IN_A_ROW = 3
"""reads that fail and succeed with s3fs before it is left to s3fs alone"""
_SHOWN = 300
"""characters of an error that the log shows; a server may have written it"""


class SmallObjects:
    """Reads small objects of one bucket. Thread-safe.

    Args:
        bucket: name of the bucket.
        open_store: opens the bucket with obstore, when the first object is read.
    """

    def __init__(self, bucket: str, open_store: Callable[[], S3Store]) -> None:
        self._bucket, self._open_store = bucket, open_store
        self._store: S3Store | None = None
        self._opening = threading.Lock()
        self._wrong = 0
        """reads in a row that failed and succeeded otherwise"""

    def read(self, key: str, size: int, otherwise: Callable[[], Read]) -> Read:
        """Read one object.

        Args:
            key: its key.
            size: size in bytes, as listed.
            otherwise: reads it with s3fs, or raises what is wrong with it.
        """
        if size > SMALL_BYTES or self._wrong >= _WRONG_IN_A_ROW or not _is_plain(key):
            return otherwise()
        try:
            found = self._get(key)
        except Exception as error:  # noqa: BLE001 - s3fs reads it, or tells the reason
            failure = error
        else:
            self._wrong = 0
            return otherwise() if found is None else found
        # Not while that error is handled: it would be the context of what is raised here.
        read = otherwise()
        self._wrong += 1
        if self._wrong == _WRONG_IN_A_ROW:
            why = first_line(failure)[:_SHOWN]
            log.warning("objects of s3://%s are read by s3fs alone, more slowly: %s", self._bucket, why)
        return read

    def _get(self, key: str) -> Read | None:
        """Read an object; None, without its content, if it has been replaced by one that is not small."""
        import obstore

        with self._opening:
            store = self._store = self._store or self._open_store()
        answer = obstore.get(store, key)
        meta = answer.meta
        if meta["size"] > SMALL_BYTES:
            return None
        content, etag = bytes(answer.bytes()), meta["e_tag"]
        if etag is None or len(content) != meta["size"]:
            raise ValueError("an object without an entity tag, or with another size than announced")
        return Read(content, etag, meta["last_modified"])


def open_store(
    bucket: str,
    endpoint: S3Endpoint,
    credentials: Any | None,
    *,
    requester_pays: bool,
    user_agent: str,
    ca_bundle: str | None = None,
) -> S3Store:
    """Open a bucket with obstore as a client of botocore reaches it.

    Args:
        bucket: name of the bucket.
        endpoint: server that the client talks to.
        credentials: botocore's, which are renewed by themselves; None for a public bucket.
        requester_pays: pay for the requests.
        user_agent: how requests name the program.
        ca_bundle: file with certificates of authorities to trust besides those of the system.
    """
    from obstore.store import S3Store

    trusted: ClientConfig = {} if ca_bundle is None else {"root_certificate": Path(ca_bundle).read_bytes()}
    return S3Store(
        bucket,
        config={
            "endpoint": endpoint.url,
            # Variables of the environment that botocore has followed already, or does not know.
            "aws_endpoint_url_s3": endpoint.url,
            "region": endpoint.region,
            "virtual_hosted_style_request": False,
            "skip_signature": credentials is None,
            "request_payer": requester_pays,
        },
        client_options={
            "allow_http": endpoint.is_plain,
            "connect_timeout": _CONNECT_SECONDS,
            "timeout": _SECONDS,
            "user_agent": user_agent,
            **trusted,
        },
        # Callers decide about further tries.
        retry_config={"max_retries": 0},
        credential_provider=None if credentials is None else _Credentials(credentials),
    )


class _Credentials:
    """Credentials of botocore, as obstore asks for them."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    def __call__(self) -> S3Credential:
        frozen = self._credentials.get_frozen_credentials()
        announce(frozen.secret_key, frozen.token)
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _CREDENTIALS_LAST,
        }


def _is_plain(key: str) -> bool:
    """Return False for a key that obstore would take for another one, or cannot name."""
    return not _CONTROL.search(key) and not any(part in ("", ".", "..") for part in key.split("/"))
