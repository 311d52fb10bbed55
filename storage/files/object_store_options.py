"""Kinds of object stores: settings of their clients and of the table engine, read from the same environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from parquetry.errors import MissingExtra, SettingsError
from parquetry.known_secrets import announce
from parquetry.sources.s3.endpoint import endpoint_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_READ_AHEAD = 1024 * 1024
"""bytes that a client reads ahead: the columns of a shard lie side by side"""
_RETRIES = {"max_retries": "5", "retry_timeout": "60s", "backoff_config.max_backoff": "5s"}
"""retries of the table engine: enough for a hiccup; after a longer wait an error is better"""


@dataclass(frozen=True, slots=True)
class ObjectStoreOptions:
    """Connection details of an object store."""

    scheme: str
    filesystem: AbstractFileSystem
    table_options: Callable[[], dict[str, str]]
    """returns storage options of delta-rs with credentials that are valid now"""
    errors: tuple[type[Exception], ...]
    """exceptions that the client raises besides OSError"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object store: its client, settings and errors."""

    reach: Callable[[], ObjectStoreOptions]
    variables: tuple[str, ...]
    """prefixes of the environment variables that hold endpoint and credentials"""


def _s3() -> ObjectStoreOptions:
    import botocore.exceptions
    import botocore.session
    from s3fs import S3FileSystem

    session = botocore.session.get_session()
    try:
        server = endpoint_of(session.create_client("s3"))
        credentials = session.get_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise SettingsError(f"S3: {error}") from error
    where = {"AWS_REGION": server.region, "aws_conditional_put": "etag"}
    if server.other is not None:
        where |= {"AWS_ENDPOINT_URL": server.url, "AWS_ALLOW_HTTP": str(server.is_plain).lower()}

    def table_options() -> dict[str, str]:
        if credentials is None:
            return {**_RETRIES, **where, "AWS_SKIP_SIGNATURE": "true"}
        frozen = credentials.get_frozen_credentials()
        announce(frozen.secret_key, frozen.token)
        options = {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
        if frozen.token:
            options["AWS_SESSION_TOKEN"] = frozen.token
        return {**_RETRIES, **where, **options}

    filesystem = S3FileSystem(
        anon=credentials is None,
        endpoint_url=server.other,
        client_kwargs={"region_name": server.region},
        default_block_size=_READ_AHEAD,
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    errors = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
    return ObjectStoreOptions("s3", filesystem, table_options, errors)


def _azure() -> ObjectStoreOptions:
    try:
        from adlfs import AzureBlobFileSystem  # type: ignore[import-untyped]
        from azure.core.exceptions import AzureError
    except ImportError as error:
        raise MissingExtra("azure", "a corpus on Azure Blob Storage") from error
    connection = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    options = _azure_options(connection) if connection else {}
    if not connection and not os.environ.get("AZURE_STORAGE_ACCOUNT_NAME"):
        raise SettingsError("Azure: set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and credentials")
    filesystem = AzureBlobFileSystem(
        connection_string=connection, anon=False, use_listings_cache=False, skip_instance_cache=True
    )
    return ObjectStoreOptions("abfs", filesystem, lambda: {**_RETRIES, **options}, (AzureError, ValueError))


def _azure_options(connection: str) -> dict[str, str]:
    """Translate a connection string into delta-rs options."""
    parts = dict(part.partition("=")[::2] for part in connection.split(";") if part)
    names = {
        "AccountName": "azure_storage_account_name",
        "AccountKey": "azure_storage_account_key",
        "SharedAccessSignature": "azure_storage_sas_token",
        "BlobEndpoint": "azure_storage_endpoint",
    }
    options = {name: parts[key] for key, name in names.items() if key in parts}
    if parts.get("BlobEndpoint", "").startswith("http://"):
        options["allow_http"] = "true"
    return options


def _google() -> ObjectStoreOptions:
    try:
        from gcsfs import GCSFileSystem  # type: ignore[import-untyped]
        from gcsfs.retry import HttpError  # type: ignore[import-untyped]
        from google.auth.exceptions import GoogleAuthError
    except ImportError as error:
        raise MissingExtra("gcs", "a corpus on Google Cloud Storage") from error
    filesystem = GCSFileSystem(use_listings_cache=False, skip_instance_cache=True)
    return ObjectStoreOptions("gs", filesystem, lambda: dict(_RETRIES), (HttpError, GoogleAuthError))


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "s3": Kind(_s3, ("AWS_",)),
        "abfs": Kind(_azure, ("AZURE_",)),
        "gs": Kind(_google, ("GOOGLE_", "STORAGE_EMULATOR_HOST")),
    }
)
