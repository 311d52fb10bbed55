"""A bucket of S3 or of an S3-compatible store."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import Field, model_validator

from parquetry.errors import SettingsError, TransientError
from parquetry.known_secrets import announce
from parquetry.model import Item, Unlisted
from parquetry.settings.base import Section
from parquetry.sources.base import Place
from parquetry.sources.options import options_of
from parquetry.sources.s3.access import AccessReader, Permissions
from parquetry.sources.s3.endpoint import endpoint_of
from parquetry.sources.s3.errors import library_errors, listing_error, reading_error
from parquetry.sources.s3.listing import Lister, Object
from parquetry.sources.s3.reading import ObjectReader
from parquetry.sources.s3.sessions import adapt
from parquetry.sources.s3.small import SmallObjects, open_store
from parquetry.threads import threads_of

if TYPE_CHECKING:
    from obstore.store import S3Store

_CONNECTIONS = 32
_ACCESS_THREADS = 16
"""objects with their tags or metadata requested concurrently"""
USER_AGENT = "parquetry"
CLIENT = {
    "connect_timeout": 10,
    "read_timeout": 60,
    "max_pool_connections": _CONNECTIONS,
    # The callers of scan and fetch decide about retries, once for all kinds of sources.
    "retries": {"total_max_attempts": 1, "mode": "standard"},
    "user_agent_extra": USER_AGENT,
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class S3Options(Section):
    """`[source.options]` of an S3 source; AWS's own settings supply missing values."""

    profile: str | None = Field(None, examples=["backup"], description="Profile of AWS's own settings files.")
    endpoint_url: str | None = Field(
        None, examples=["https://minio.intern:9000"], description="Server that is not AWS; else `AWS_ENDPOINT_URL`."
    )
    region: str | None = Field(None, examples=["eu-central-1"], description="Region; else `AWS_REGION`.")
    access_key_id: str | None = Field(
        None, repr=False, examples=["env:ARCHIVE_KEY_ID"], description="Key id of this source; else AWS's own search."
    )
    secret_access_key: str | None = Field(
        None, repr=False, examples=["env:ARCHIVE_KEY"], description="Secret key that belongs to `access_key_id`."
    )
    session_token: str | None = Field(
        None, repr=False, examples=["env:ARCHIVE_TOKEN"], description="Token of temporary keys."
    )
    anonymous: bool = Field(False, description="Use no credentials: the bucket is public.")
    requester_pays: bool = Field(False, description="Agree to pay for the requests and the traffic.")
    permissions: Permissions = Field("none", description="Where an object says who may see it; a request for each.")

    @model_validator(mode="after")
    def _one_kind_of_credentials(self) -> S3Options:
        keys = self.access_key_id is not None, self.secret_access_key is not None
        if any(keys) != all(keys) or (self.session_token is not None and not all(keys)):
            raise ValueError("access_key_id and secret_access_key belong together, and session_token to both")
        if sum((any(keys), self.profile is not None, self.anonymous)) > 1:
            raise ValueError("give one of access_key_id, profile and anonymous")
        return self


class S3Source:
    """Objects below a prefix of a bucket, or a single object.

    Args:
        place: place with a URL `s3://bucket/prefix`.
        options: connection options.
    """

    def __init__(self, place: Place, options: S3Options) -> None:
        bucket, _, self._key = place.uri.partition("://")[2].partition("/")
        if not bucket:
            raise SettingsError(f"source {place.name}: {place.uri} names no bucket; write s3://bucket/prefix")
        self._bucket, self._place, self._options = bucket, place, options
        self._root = self._key if self._key.endswith("/") or not self._key else self._key + "/"
        self._reader = ObjectReader(bucket, self._files(), SmallObjects(bucket, self._store))

    def scan(self, prefix: str = "") -> Generator[Item | Unlisted, None, None]:
        """List as `Source.scan` describes; a missing part of the listing is always an error."""
        place = self._uri(self._root + prefix)
        try:
            for objects in self._pages(prefix.rstrip("/")):
                yield from self._listed([each for each in objects if not _is_folder(each)])
        except library_errors() as error:
            raise listing_error(error, place) from error

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        key = self._key if item.uri == self._uri(self._key) else self._root + item.path
        read = self._reader.read(key, item.size)
        if _bare(read.etag) == item.etag.rsplit("-", 2)[0]:
            if len(read.content) != item.size:
                raise TransientError(
                    "broken-answer", f"{item.uri} was sent with {len(read.content)} bytes and listed with {item.size}"
                )
            return item, read.content
        # It was replaced after it was listed, and its access may have changed, too.
        try:
            access = self._access.of(key)
        except library_errors() as error:
            raise reading_error(error, item.uri) from error
        except ValueError as error:
            raise TransientError("changed-while-read", f"{item.uri}: {error}") from error
        changed = replace(
            item,
            size=len(read.content),
            etag=_token(read.etag, read.modified_at, len(read.content)),
            modified_at=read.modified_at.astimezone(UTC),
            access=access,
        )
        return changed, read.content

    def _pages(self, prefix: str) -> Iterator[Sequence[Object]]:
        alone = self._single()
        if alone is not None:
            yield [alone] if prefix in ("", _filename(self._key)) else []
            return
        if prefix:
            exact = self._lister.first(self._root + prefix)
            if exact is not None and exact["Key"] == self._root + prefix:
                yield [exact]
            prefix += "/"
        yield from self._lister.pages(self._root + prefix)

    def _single(self) -> Object | None:
        """Return the object that the source's URL names, or None if it names a folder."""
        if self._key == self._root:
            return None
        found = self._lister.first(self._key)
        # Some tools mark folders with empty objects.
        if found is None or found["Key"] != self._key or not found["Size"]:
            return None
        if self._lister.first(self._root) is not None:
            raise SettingsError(
                f"{self._place.uri} is an object and a folder; write {self._place.uri}/ for what is in the folder, or "
                "name the folder above with include globs"
            )
        return found

    def _listed(self, objects: Sequence[Object]) -> Sequence[Item | Unlisted]:
        if self._options.permissions == "none":
            return [self._item(each) for each in objects]
        with threads_of(_ACCESS_THREADS, "s3-access") as pool:
            return [found for found in pool.map(self._with_access, objects) if found is not None]

    def _with_access(self, listed: Object) -> Item | Unlisted | None:
        item = self._item(listed)
        try:
            return replace(item, access=self._access.of(listed["Key"]))
        except library_errors() as error:
            why = reading_error(error, item.uri)
            if isinstance(why, FileNotFoundError):
                return None
            if isinstance(why, SettingsError):
                raise why from error
            return Unlisted(item.path, f"cannot read the {self._options.permissions} of {item.uri}: {why}")
        except ValueError as error:
            return Unlisted(item.path, f"{self._options.permissions} of {item.uri}: {error}")

    def _item(self, listed: Object) -> Item:
        key, modified = listed["Key"], listed["LastModified"].astimezone(UTC)
        return Item(
            path=key.removeprefix(self._root) if key != self._key else _filename(key),
            uri=self._uri(key),
            size=listed["Size"],
            etag=_token(listed.get("ETag", ""), modified, listed["Size"]),
            modified_at=modified,
            access=self._place.access,
        )

    def _uri(self, key: str) -> str:
        # Written as AWS's tools write it, but with control characters quoted: a terminal would interpret them.
        return _CONTROL.sub(lambda found: quote(found[0]), f"s3://{self._bucket}/{key}")

    @property
    def _requests(self) -> dict[str, str]:
        return {"RequestPayer": "requester"} if self._options.requester_pays else {}

    @cached_property
    def _lister(self) -> Lister:
        return Lister(self._client, self._bucket, self._requests)

    @cached_property
    def _access(self) -> AccessReader:
        kind = self._options.permissions
        return AccessReader(self._client, self._bucket, self._requests, kind, self._place.access)

    @cached_property
    def _core(self) -> Any:
        """Session of botocore; that of boto3 gives it the profile."""
        from botocore.session import get_session

        core = get_session()
        adapt(core)
        return core

    @cached_property
    def _session(self) -> Any:
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError

        try:
            return Session(
                aws_access_key_id=self._options.access_key_id,
                aws_secret_access_key=self._options.secret_access_key,
                aws_session_token=self._options.session_token,
                botocore_session=self._core,
                profile_name=self._options.profile,
                region_name=self._options.region,
            )
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(f"source {self._place.name}: {error}") from error

    @cached_property
    def _credentials(self) -> Any | None:
        """Credentials of the session, which are renewed by themselves; None if there are none, or none are used."""
        credentials = None if self._options.anonymous else self._session.get_credentials()
        if credentials is not None:
            announce(credentials.secret_key, credentials.token)
        return credentials

    @cached_property
    def _client(self) -> Any:
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        signing = {"signature_version": UNSIGNED} if self._options.anonymous else {}
        config = Config(**CLIENT, **signing)
        try:
            # So that no message repeats what they hold.
            _ = self._credentials
            return self._session.client("s3", endpoint_url=self._options.endpoint_url, config=config)
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(f"source {self._place.name}: {error}") from error

    def _store(self) -> S3Store:
        return open_store(
            self._bucket,
            endpoint_of(self._client),
            self._credentials,
            ca_bundle=self._core.get_config_variable("ca_bundle"),
            requester_pays=self._options.requester_pays,
            user_agent=USER_AGENT,
        )

    def _files(self) -> dict[str, Any]:
        """Return the options with which s3fs reaches the place as boto3 does."""
        options = self._options
        return {
            "anon": options.anonymous,
            "requester_pays": options.requester_pays,
            "endpoint_url": options.endpoint_url,
            "client_kwargs": {"region_name": options.region},
            "config_kwargs": dict(CLIENT),
            "profile": options.profile,
            "key": options.access_key_id,
            "secret": options.secret_access_key,
            "token": options.session_token,
        }


def open_s3(place: Place) -> S3Source:
    """Open the bucket, prefix or object at `s3://bucket/prefix`.

    Raises:
        SettingsError: unknown options, or no bucket.
    """
    return S3Source(place, options_of(place, S3Options))


def _filename(key: str) -> str:
    return key.rpartition("/")[2]


def _is_folder(listed: Object) -> bool:
    return not listed["Size"] and listed["Key"].endswith("/")


def _token(etag: str, modified: datetime, size: int) -> str:
    return f"{_bare(etag)}-{int(modified.timestamp()):x}-{size:x}"


def _bare(etag: str) -> str:
    return etag.strip('"')
