"""Small files that people write: read within a limit, and never one that has no end."""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DEEPEST_TOML = 64
"""tables and lists within each other; no setting needs more than a few"""


def read_small(file: Path, most: int, *, anything: bool = True) -> bytes:
    """Read what somebody wrote.

    Args:
        file: where it is.
        most: bytes.
        anything: follow links, and read pipes and devices, too. A pipe that nobody writes to is empty.

    Raises:
        OSError: it cannot be read, is not a file, or is too large; its `strerror` says so.
    """
    flags = os.O_RDONLY if anything else os.O_RDONLY | os.O_NOFOLLOW
    with os.fdopen(open_file(file, flags, anything=anything), "rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes", str(file))
    return content


def open_file(file: str | Path, flags: int, *, anything: bool = False) -> int:
    """Open a file, for `open(..., opener=open_file)`, without waiting for whoever is at the other end of a pipe.

    Args:
        file: where it is.
        flags: of `os.open`.
        anything: open pipes and devices, too.

    Returns:
        A descriptor.

    Raises:
        OSError: it cannot be opened, or is a folder, a device or the like; its `strerror` says so.
    """
    descriptor = os.open(file, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode) or not (anything or stat.S_ISREG(mode)):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is a folder" if stat.S_ISDIR(mode) else "is not a file", str(file))
    os.set_blocking(descriptor, True)
    return descriptor


def parse_toml(content: bytes) -> dict[str, Any]:
    """TOML as values.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
        ValueError: it is not valid TOML, or nests deeper than `DEEPEST_TOML`.
    """
    text = content.decode("utf-8")
    # A key of so many parts would take memory by their square.
    if any(_dots(line) > DEEPEST_TOML for line in text.split("\n")):
        raise ValueError(_TOO_DEEP)
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    level: list[Any] = [values]
    for _ in range(DEEPEST_TOML):
        level = [inner for each in level for inner in _inside(each)]
    if level:
        raise ValueError(_TOO_DEEP)
    return values


_TOO_DEEP = f"nests tables or lists more than {DEEPEST_TOML} deep"


def _dots(line: str) -> int:
    """In what may be one key of a line."""
    if line.count(".") <= DEEPEST_TOML or line.lstrip().startswith("#"):
        return 0
    return max(part.count(".") for part in re.split(r"[=,{}\[\]]", line))


def _inside(value: Any) -> Iterable[Any]:
    """Tables and lists right in a value."""
    held = value.values() if isinstance(value, dict) else value
    return (each for each in held if isinstance(each, dict | list))
