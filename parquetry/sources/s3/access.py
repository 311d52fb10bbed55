"""Access to an object, from its tags or metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from parquetry.model import Access, Visibility

Permissions = Literal["none", "tags", "metadata"]
KEYS = ("visibility", "org_id", "user_id", "tags")
"""keys of tags and metadata; `-` may replace `_`, which HTTP headers do not handle well"""


class AccessReader:
    """Reads the tags or metadata of objects.

    Args:
        client: boto3 client.
        bucket: name of the bucket.
        options: options of every request, such as `RequestPayer`.
        kind: where objects specify their access.
        base: access for objects that specify none.
    """

    def __init__(self, client: Any, bucket: str, options: Mapping[str, str], kind: Permissions, base: Access) -> None:
        self._client, self._bucket, self._options = client, bucket, options
        self._kind, self._base = kind, base

    def of(self, key: str) -> Access:
        """Return the access of one object.

        Raises:
            ValueError: invalid tags or metadata.
            ClientError, BotoCoreError: as boto3 raises them.
        """
        if self._kind == "none":
            return self._base
        if self._kind == "metadata":
            answer = self._client.head_object(Bucket=self._bucket, Key=key, **self._options)
            return access_of(answer["Metadata"], self._base)
        answer = self._client.get_object_tagging(Bucket=self._bucket, Key=key, **self._options)
        return access_of({each["Key"]: each["Value"] for each in answer["TagSet"]}, self._base)


def access_of(told: Mapping[str, str], base: Access) -> Access:
    """Return the access that tags or metadata specify.

    Args:
        told: names and values; all except `KEYS` are ignored. Labels in `tags` are separated by spaces.
        base: defaults for missing keys.

    Raises:
        ValueError: an unknown visibility, or one without its required organisation or user.
    """
    named = {name.lower().replace("-", "_"): value.strip() for name, value in told.items()}
    org_id, user_id = named.get("org_id", base.org_id), named.get("user_id", base.user_id)
    word, known = named.get("visibility", base.visibility), get_args(Visibility)
    visibility: Visibility | None = next((each for each in known if each == word), None)
    if visibility is None:
        raise ValueError(f"visibility {word!r} is none of {', '.join(known)}")
    if visibility == "organization" and not org_id:
        raise ValueError("visibility organization needs org_id")
    if visibility == "individual" and not user_id:
        raise ValueError("visibility individual needs user_id")
    tags = tuple(named["tags"].split()) if "tags" in named else base.tags
    return Access(visibility, org_id or None, user_id or None, tags)
