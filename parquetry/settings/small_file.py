"""Small hand-written files, read within a size limit and without blocking on endless ones."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_small(file: Path, most: int, *, anything: bool = True) -> bytes:
    """Read a small hand-written file.

    Args:
        file: path of the file.
        most: maximum size in bytes.
        anything: follow links, and read pipes and devices, too. A pipe without a writer is empty.

    Raises:
        OSError: it cannot be read, is not a file, or is too large; see its `strerror`.
    """
    flags = os.O_RDONLY if anything else os.O_RDONLY | os.O_NOFOLLOW
    with os.fdopen(open_file(file, flags, anything=anything), "rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes", str(file))
    return content


def open_file(file: str | Path, flags: int, *, anything: bool = False) -> int:
    """Open a file, for `open(..., opener=open_file)`, without waiting for the other end of a pipe.

    Args:
        file: path of the file.
        flags: flags of `os.open`.
        anything: open pipes and devices, too.

    Returns:
        File descriptor.

    Raises:
        OSError: it cannot be opened, or is a folder, a device or the like; see its `strerror`.
    """
    descriptor = os.open(file, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode) or not (anything or stat.S_ISREG(mode)):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is a folder" if stat.S_ISDIR(mode) else "is not a file", str(file))
    os.set_blocking(descriptor, True)
    return descriptor
