"""Members of archives of every kind: what is refused by its name, number or size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from parquetry.decompress import MAX_RATIO, is_bomb
from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.sources.names import printable

MAX_MEMBERS = 50_000
MAX_DIRECTORY_BYTES = 32 * 1024 * 1024
"""Maximum bytes in the table of contents of a zip archive, which is read whole."""
MAX_HELD_BYTES = 256 * 1024 * 1024
"""Maximum bytes held whole in memory: a compressed tar, a nested archive, an archive fetched over the network."""

_MAX_NAME = 1024
"""characters"""
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Member:
    """File in an archive, or an entry refused in its place."""

    name: str
    """unique path within the archive; for a refused name, its percent-encoded form"""
    size: int
    """bytes, as declared by the archive"""
    token: str
    """change token; does not detect a change in a tar with reset modification times"""
    modified_at: datetime | None
    """UTC; None if the archive records no valid date"""
    refusal: DocumentError | None = None
    """reason for not reading it"""


def collect(members: Iterator[Member], packed: int) -> dict[str, Member]:
    """Return the members by name; a name shared by several members is refused."""
    collected: dict[str, Member] = {}
    total = 0
    for member in members:
        total += 0 if member.refusal else member.size
        if is_bomb(total, packed):
            raise BrokenDocument("too-large", f"the archive unpacks to more than {MAX_RATIO} times its size")
        if member.name in collected:
            several = BrokenDocument("duplicate-name", "the archive holds several files of this name")
            member = replace(member, refusal=several)
        collected[member.name] = member
        if len(collected) > MAX_MEMBERS:
            raise too_many()
    return collected


def readable(members: Mapping[str, Member], name: str) -> Member:
    member = members.get(name)
    if member is None:
        raise FileNotFoundError(2, "is not in the archive any more", name)
    if member.refusal is not None:
        raise member.refusal
    return member


def place_of(raw: str) -> str | None:
    """Return the path of a member within its archive, with `/` between the parts; None for an unsafe name."""
    if len(raw) > _MAX_NAME or "\0" in raw or raw.startswith("/") or _DRIVE.match(raw):
        return None
    parts = [part for part in raw.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        return None
    return printable("/".join(parts))


def refused_name(raw: str) -> str:
    """Return a safe name for a member with a refused name."""
    return quote(raw[:_MAX_NAME], safe="", errors="backslashreplace").replace("..", "%2E%2E")


def too_many() -> BrokenDocument:
    return BrokenDocument("too-many-members", f"the archive has more than {MAX_MEMBERS} members")


def unsafe() -> BrokenDocument:
    return BrokenDocument("unsafe-name", "the name of the member leads out of the archive, or is none")


def link() -> SkippedDocument:
    return SkippedDocument("link", "the member is a link; links in archives are not followed")
