"""Detection of full disks in the errors of all libraries, with one error message for them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from deltalake.exceptions import DeltaError

from parquetry.errors import DISK_FULL, DiskFull

_TELLS = (*(os.strerror(number) for number in sorted(DISK_FULL)), "failed to offload data block")
"""texts in messages of delta-rs and DuckDB, which carry no error numbers; the last is DuckDB's, for a full folder of
data spilled from memory"""
_IN_QUOTES = re.compile(r'file "(/[^"]+)"')


def is_full(error: BaseException | None) -> bool:
    """True if an error, or one of its causes, means that a disk has no space or no file entries left."""
    if error is None:
        return False
    if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in DISK_FULL):
        return True
    told = isinstance(error, OSError | DeltaError | duckdb.Error) and any(tell in str(error) for tell in _TELLS)
    return told or is_full(error.__cause__)


def disk_full(error: BaseException, place: str | Path, what: str) -> DiskFull | None:
    """Return our error for one that means a full disk; None if it means something else.

    Args:
        error: error of the system or a library.
        place: location that was being written, for an error that names no file.
        what: the operation that failed.
    """
    if isinstance(error, DiskFull):
        return error
    return DiskFull(f"no space left on device: {_file(error) or place}; {what}") if is_full(error) else None


@contextmanager
def naming(place: str | Path) -> Iterator[None]:
    """Add a file name to errors for a full disk, which errors of libraries and of writes lack.

    Raises:
        OSError: the disk is full; any other error is raised unchanged.
    """
    try:
        yield
    except (OSError, DeltaError) as error:
        if not is_full(error) or _file(error) is not None:
            raise
        number = errno.ENOSPC if not isinstance(error, OSError) or error.errno is None else error.errno
        raise OSError(number, os.strerror(number), str(place)) from error


def _file(error: BaseException) -> str | None:
    """Return the file that an error names."""
    if isinstance(error, OSError) and error.filename is not None:
        return os.fsdecode(error.filename)
    named = _IN_QUOTES.search(str(error))
    return named[1] if named else None
