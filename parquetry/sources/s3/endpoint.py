"""Server and region that a client of S3 found in its options, the environment and AWS's own settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """Server of a bucket."""

    url: str
    region: str

    @property
    def other(self) -> str | None:
        """The server if it is not AWS; None for AWS, whose servers follow from the region."""
        return None if (urlsplit(self.url).hostname or "").endswith(".amazonaws.com") else self.url

    @property
    def is_plain(self) -> bool:
        """True if requests are not encrypted."""
        return self.url.startswith("http://")


def endpoint_of(client: Any) -> S3Endpoint:
    """Return the server that a client of botocore talks to."""
    meta = client.meta
    # Only the client accepts its name for AWS as a whole as a region.
    region = "us-east-1" if meta.region_name in (None, "aws-global") else meta.region_name
    return S3Endpoint(meta.endpoint_url, region)
