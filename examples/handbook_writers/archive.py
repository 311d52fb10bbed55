"""Zip containers whose bytes depend on nothing but their content."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_EPOCH = (1980, 1, 1, 0, 0, 0)


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A zip file of `members`, in their order.

    They are stored and not deflated, because builds of zlib differ in the bytes that they produce.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            target.writestr(info, content)
    return buffer.getvalue()


def repack(content: bytes) -> bytes:
    """The same zip file with the names in order and without the clock, the machine and the compressor in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        return archive({name: source.read(name) for name in sorted(source.namelist(), key=_rank)})


def _rank(name: str) -> tuple[bool, str]:
    return name != "[Content_Types].xml", name
