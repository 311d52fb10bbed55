"""Complete listings of a bucket, page by page and several folders concurrently; an incomplete one is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from parquetry.sources.s3.errors import broken_listing
from parquetry.threads import threads_of

Object = Mapping[str, Any]
"""an object as listed by the server: `Key`, `Size`, `ETag`, `LastModified`"""
PAGE = 1000
"""keys per response; the maximum of every server"""
THREADS = 8
"""pages requested concurrently"""
_FEW_FOLDERS = 16
"""in the first 1,000 keys; with more, folders are small, and one request per folder would cost more than it saves"""
_LEVELS = 8
"""depth of folders listed separately"""


@dataclass(frozen=True, slots=True)
class _Branch:
    """Keys with a common prefix, with pages still to request."""

    prefix: str
    level: int
    pages: Iterator[Any]
    tokens: set[str] = field(default_factory=set)
    """continuation tokens of the pages so far; a repeated one would loop forever"""


@dataclass(frozen=True, slots=True)
class _Step:
    """Result of one response."""

    objects: Sequence[Object]
    branches: Sequence[_Branch]
    """listings to continue with"""


class Lister:
    """Lists a bucket.

    client: boto3 client.
    bucket: name of the bucket.
    options: options of every request, such as `RequestPayer`.
    """

    def __init__(self, client: Any, bucket: str, options: Mapping[str, str]) -> None:
        self._client, self._bucket, self._options = client, bucket, options

    def first(self, prefix: str) -> Object | None:
        """Return the first object with a key that starts with `prefix`, or None."""
        page = self._client.list_objects_v2(**{**self._request(prefix), "MaxKeys": 1})
        self._check(page, prefix)
        return next(iter(page.get("Contents", ())), None)

    def pages(self, prefix: str) -> Iterator[Sequence[Object]]:
        """Yield all objects with keys that start with `prefix`, one page at a time, in no particular order.

        Raises:
            TransientError: the listing contradicts itself.
            ClientError, BotoCoreError: as boto3 raises them.
        """
        waiting = [self._branch(prefix, 0)]
        running: set[Future[_Step]] = set()
        with threads_of(THREADS, "s3-listing") as pool:

            def start() -> None:
                while waiting and len(running) < THREADS:
                    running.add(pool.submit(self._advance, waiting.pop()))

            try:
                start()
                while running:
                    done = wait(running, return_when=FIRST_COMPLETED).done
                    running -= done
                    steps = [future.result() for future in done]
                    for step in steps:
                        waiting.extend(step.branches)
                    # Request the next pages while the caller processes these.
                    start()
                    for step in steps:
                        yield step.objects
            finally:
                for future in running:
                    future.cancel()

    def _branch(self, prefix: str, level: int) -> _Branch:
        paginator = self._client.get_paginator("list_objects_v2")
        return _Branch(prefix, level, iter(paginator.paginate(**self._request(prefix))))

    def _advance(self, branch: _Branch) -> _Step:
        page = next(branch.pages)
        self._check(page, branch.prefix)
        objects = page.get("Contents", [])
        if not page["IsTruncated"]:
            return _Step(objects, ())
        if not branch.tokens and branch.level < _LEVELS:
            apart = self._folders(branch, objects)
            if apart is not None:
                return apart
        token = page["NextContinuationToken"]
        if token in branch.tokens:
            raise broken_listing(self._place(branch.prefix), "the server sends the same part of the listing again")
        branch.tokens.add(token)
        return _Step(objects, (branch,))

    def _folders(self, branch: _Branch, seen: Sequence[Object]) -> _Step | None:
        """Split the same keys by folder; return None if a single listing is cheaper."""
        rests = (each["Key"].removeprefix(branch.prefix) for each in seen)
        if len({rest.partition("/")[0] for rest in rests if "/" in rest}) > _FEW_FOLDERS:
            return None
        page = self._client.list_objects_v2(**self._request(branch.prefix), Delimiter="/")
        self._check(page, branch.prefix)
        folders = tuple(each["Prefix"] for each in page.get("CommonPrefixes", ()))
        objects = page.get("Contents", [])
        keys = {each["Key"] for each in objects}
        # Do not list by folder on a server that gets folders wrong.
        believable = all(each["Key"] in keys or each["Key"].startswith(folders) for each in seen)
        if page["IsTruncated"] or not folders or not believable:
            return None
        return _Step(objects, [self._branch(folder, branch.level + 1) for folder in folders])

    def _check(self, page: Mapping[str, Any], prefix: str) -> None:
        """Raise if a response cannot be the requested part of a listing."""
        place = self._place(prefix)
        objects, folders = page.get("Contents", ()), page.get("CommonPrefixes", ())
        if "IsTruncated" not in page:
            raise broken_listing(place, "the server's answer is not a listing")
        if page["IsTruncated"] and not page.get("NextContinuationToken"):
            raise broken_listing(place, "the server says that there is more, and not how to get it")
        if page.get("KeyCount", len(objects) + len(folders)) != len(objects) + len(folders):
            raise broken_listing(place, f"the server counts {page['KeyCount']} keys and sends {len(objects)}")
        if not all(each["Key"].startswith(prefix) for each in objects):
            raise broken_listing(place, "the server lists keys that were not asked for")
        if not all(each["Prefix"].startswith(prefix) and each["Prefix"] != prefix for each in folders):
            raise broken_listing(place, "the server lists folders that were not asked for")

    def _request(self, prefix: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Prefix": prefix, "MaxKeys": PAGE, **self._options}

    def _place(self, prefix: str) -> str:
        return f"s3://{self._bucket}/{prefix}"
