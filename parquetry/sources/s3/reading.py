"""Reads objects through s3fs: small ones at once, large ones by ranges of one and the same version."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from parquetry.sources.s3.errors import is_precondition, library_errors, reading_error

PART = 8 * 2**20
"""bytes of a range"""
_AT_A_TIME = 4
"""ranges of one object"""


@dataclass(frozen=True, slots=True)
class Read:
    """An object as it was read."""

    content: bytes
    etag: str
    """as the server writes it"""
    modified_at: datetime
    """UTC"""


class _Replaced(Exception):
    """Two ranges are not of one version."""


class ObjectReader:
    """Reads objects of one bucket. Safe to use from several threads.

    Args:
        bucket: its name.
        options: of `s3fs.S3FileSystem`.
    """

    def __init__(self, bucket: str, options: Mapping[str, Any]) -> None:
        self._bucket, self._options = bucket, options

    @cached_property
    def _files(self) -> Any:
        from s3fs import S3FileSystem

        files = S3FileSystem(**self._options, skip_instance_cache=True, use_listings_cache=False)
        # Whoever reads documents decides about trying again.
        files.retries = 1
        return files

    def read(self, key: str, size: int) -> Read:
        """Read one object whole.

        Args:
            key: its key.
            size: bytes, as it was listed.

        Raises:
            FileNotFoundError: it is not there any more.
            BrokenDocument, PermissionError: it cannot be read.
            SettingsError: the credentials do not hold any more.
            TransientError: it could not be read now.
        """
        from fsspec.asyn import sync

        try:
            read: Read = sync(self._files.loop, self._read, key, size)
        except library_errors() as error:
            raise reading_error(error, f"s3://{self._bucket}/{key}") from error
        return read

    async def _read(self, key: str, size: int) -> Read:
        if size > 2 * PART:
            try:
                return await self._by_ranges(key)
            except (OSError, _Replaced) as error:
                if not isinstance(error, _Replaced) and not is_precondition(error):
                    raise
                # It changed between two ranges. One answer cannot mix two versions.
        answer, content = await self._get(key)
        return Read(content, answer["ETag"], answer["LastModified"])

    async def _by_ranges(self, key: str) -> Read:
        answer, first = await self._get(key, Range=f"bytes=0-{PART - 1}")
        total = answer.get("ContentRange", "").rpartition("/")[2]
        if not total.isdecimal():
            return Read(first, answer["ETag"], answer["LastModified"])
        same = {"IfMatch": answer["ETag"]}
        if answer.get("VersionId", "null") != "null":
            same["VersionId"] = answer["VersionId"]
        places = asyncio.Semaphore(_AT_A_TIME)

        async def part(start: int) -> bytes:
            async with places:
                other, content = await self._get(key, Range=f"bytes={start}-{start + PART - 1}", **same)
            if other["ETag"] != answer["ETag"]:
                raise _Replaced
            return content

        rest = await asyncio.gather(*(part(start) for start in range(PART, int(total), PART)))
        return Read(b"".join([first, *rest]), answer["ETag"], answer["LastModified"])

    async def _get(self, key: str, **request: str) -> tuple[Mapping[str, Any], bytes]:
        # Not by a path: s3fs would take a part of some keys for a version, and others for folders.
        answer = await self._files._call_s3("get_object", Bucket=self._bucket, Key=key, **request)
        try:
            content = await answer["Body"].read()
        finally:
            answer["Body"].close()
        if len(content) != answer["ContentLength"]:
            from botocore.exceptions import IncompleteReadError

            raise IncompleteReadError(actual_bytes=len(content), expected_bytes=answer["ContentLength"])
        return answer, content
