"""Lists the objects of a bucket, page by page and several folders at a time: all of them, or an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from parquetry.sources.s3.errors import broken_listing
from parquetry.threads import threads_of

Object = Mapping[str, Any]
"""an object as the server lists it: `Key`, `Size`, `ETag`, `LastModified`"""
PAGE = 1000
"""keys in an answer; no server gives more"""
THREADS = 8
"""pages that are asked for at a time"""
_FEW_FOLDERS = 16
"""in the first thousand keys: with more, folders are small, and a request for each would cost more than it saves"""
_LEVELS = 8
"""of folders that are listed apart"""


@dataclass(frozen=True, slots=True)
class _Branch:
    """Keys with one prefix, of which some pages are still to come."""

    prefix: str
    level: int
    pages: Iterator[Any]
    tokens: set[str] = field(default_factory=set)
    """of the pages so far: one that comes again would have no end"""


@dataclass(frozen=True, slots=True)
class _Step:
    """What one answer brought."""

    objects: Sequence[Object]
    branches: Sequence[_Branch]
    """what is to be listed next because of it"""


class Lister:
    """Lists a bucket.

    Args:
        client: of boto3.
        bucket: its name.
        options: of every request, as `RequestPayer`.
    """

    def __init__(self, client: Any, bucket: str, options: Mapping[str, str]) -> None:
        self._client, self._bucket, self._options = client, bucket, options

    def first(self, prefix: str) -> Object | None:
        """The first object whose key starts with `prefix`, if there is any."""
        page = self._client.list_objects_v2(**{**self._request(prefix), "MaxKeys": 1})
        self._check(page, prefix)
        return next(iter(page.get("Contents", ())), None)

    def pages(self, prefix: str) -> Iterator[Sequence[Object]]:
        """All objects whose keys start with `prefix`, in no particular order, a page at a time.

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
                    # The next pages are on their way while the caller looks at these.
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
        """The same keys, by folder; None if they are better listed in one go."""
        rests = (each["Key"].removeprefix(branch.prefix) for each in seen)
        if len({rest.partition("/")[0] for rest in rests if "/" in rest}) > _FEW_FOLDERS:
            return None
        page = self._client.list_objects_v2(**self._request(branch.prefix), Delimiter="/")
        self._check(page, branch.prefix)
        folders = tuple(each["Prefix"] for each in page.get("CommonPrefixes", ()))
        objects = page.get("Contents", [])
        keys = {each["Key"] for each in objects}
        # A server that is not good at folders is not asked for them.
        believable = all(each["Key"] in keys or each["Key"].startswith(folders) for each in seen)
        if page["IsTruncated"] or not folders or not believable:
            return None
        return _Step(objects, [self._branch(folder, branch.level + 1) for folder in folders])

    def _check(self, page: Mapping[str, Any], prefix: str) -> None:
        """Raise if an answer cannot be the whole part of a listing that it should be."""
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
