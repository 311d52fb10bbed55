"""Documents that this process opens, as reported by Python's audit events."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parquetry.sources.local.access import SIDECAR

_watched: list[tuple[Path, list[str]]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event != "open" or not _watched:
        return
    name = arguments[0]
    if isinstance(name, str | bytes | os.PathLike):
        file = Path(os.fsdecode(name)).absolute()
        for folder, opened in _watched:
            if file.is_relative_to(folder) and file.name != SIDECAR:
                opened.append(str(file.relative_to(folder)))


sys.addaudithook(_hear)


@contextmanager
def opened_in(folder: Path) -> Iterator[list[str]]:
    """Record the files opened in a folder inside the block: relative paths, one per opening; files that set permissions
    are left out."""
    watched: tuple[Path, list[str]] = (folder.resolve(), [])
    _watched.append(watched)
    try:
        yield watched[1]
    finally:
        _watched.remove(watched)
