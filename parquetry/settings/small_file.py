"""Small files that people write: read within a limit, and never one that has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


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
