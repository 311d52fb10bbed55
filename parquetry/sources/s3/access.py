"""Who may see an object, from its tags or its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from parquetry.model import Access, Visibility

Permissions = Literal["none", "tags", "metadata"]
KEYS = ("visibility", "org_id", "user_id", "tags")
"""of tags and metadata; `-` stands for `_` as well, which headers of HTTP do not like"""


class AccessReader:
    """Asks for the tags or the metadata of objects.

    Args:
        client: of boto3.
        bucket: its name.
        options: of every request, as `RequestPayer`.
        kind: where to look.
        base: what holds where an object says nothing.
    """

    def __init__(self, client: Any, bucket: str, options: Mapping[str, str], kind: Permissions, base: Access) -> None:
        self._client, self._bucket, self._options = client, bucket, options
        self._kind, self._base = kind, base

    def of(self, key: str) -> Access:
        """Who may see one object.

        Raises:
            ValueError: what the object says makes no sense.
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
    """Who may see an object, by its tags or metadata.

    Args:
        told: names and values; others than `KEYS` are passed over. Labels in `tags` are separated by spaces.
        base: what holds for those that are missing.

    Raises:
        ValueError: an unknown visibility, or one without the organisation or user that it needs.
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
