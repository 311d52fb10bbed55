"""Reads objects: small ones with obstore, others through s3fs, large ones by ranges of a single version."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from parquetry.sources.s3.errors import is_precondition, library_errors, reading_error
from parquetry.sources.s3.read import Read
from parquetry.sources.s3.sessions import adapt
from parquetry.sources.s3.small import SmallObjects

PART = 8 * 2**20
"""bytes per range"""
_AT_A_TIME = 4
"""concurrent ranges per object"""


class _Replaced(Exception):
    """Two ranges belong to different versions."""


class ObjectReader:
    """Reads objects of one bucket. Thread-safe.

    Args:
        bucket: name of the bucket.
        options: options of `s3fs.S3FileSystem`.
        small: reads small objects; None to read all through s3fs.
    """

    def __init__(self, bucket: str, options: Mapping[str, Any], small: SmallObjects | None = None) -> None:
        self._bucket, self._options, self._small = bucket, options, small

    @cached_property
    def _files(self) -> Any:
        from aiobotocore.session import AioSession
        from s3fs import S3FileSystem

        session = AioSession(profile=self._options.get("profile"))
        adapt(session)
        config = {
            **self._options.get("config_kwargs", {}),
            # The same for each request, instead of put together for each.
            "user_agent": session.user_agent(),
            "parameter_validation": False,
        }
        options = {**self._options, "config_kwargs": config}
        files = S3FileSystem(**options, session=session, skip_instance_cache=True, use_listings_cache=False)
        # The callers decide about retries.
        files.retries = 1
        return files

    def read(self, key: str, size: int) -> Read:
        """Read one whole object.

        Args:
            key: key of the object.
            size: size in bytes, as listed.

        Raises:
            FileNotFoundError: it no longer exists.
            BrokenDocument, PermissionError: it cannot be read.
            SettingsError: the credentials are no longer valid.
            TransientError: it could not be read this time.
        """
        if self._small is None:
            return self._through_s3fs(key, size)
        return self._small.read(key, size, lambda: self._through_s3fs(key, size))

    def _through_s3fs(self, key: str, size: int) -> Read:
        from fsspec.asyn import get_loop, sync

        read: Read = sync(get_loop(), self._request, key, size)
        return read

    async def _request(self, key: str, size: int) -> Read:
        try:
            return await self._read(key, size)
        except library_errors() as error:
            raise reading_error(error, f"s3://{self._bucket}/{key}") from error

    async def _read(self, key: str, size: int) -> Read:
        if size > 2 * PART:
            try:
                return await self._by_ranges(key)
            except (OSError, _Replaced) as error:
                if not isinstance(error, _Replaced) and not is_precondition(error):
                    raise
                # It changed between two ranges. A single response cannot mix two versions.
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
        # Not by a path: s3fs would parse part of some keys as a version, and treat others as folders.
        answer = await self._files._call_s3("get_object", Bucket=self._bucket, Key=key, **request)
        try:
            content = await answer["Body"].read()
        finally:
            answer["Body"].close()
        if len(content) != answer["ContentLength"]:
            from botocore.exceptions import IncompleteReadError

            raise IncompleteReadError(actual_bytes=len(content), expected_bytes=answer["ContentLength"])
        return answer, content
