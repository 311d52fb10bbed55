"""What the libraries raise when a disk is full, said in one way."""

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
"""in texts of delta-rs and DuckDB, which have no numbers; the last is of DuckDB, whose folder for what memory does not
hold has no space left"""
_IN_QUOTES = re.compile(r'file "(/[^"]+)"')


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, means that a disk has no space left, or no more files."""
    if error is None:
        return False
    if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in DISK_FULL):
        return True
    told = isinstance(error, OSError | DeltaError | duckdb.Error) and any(tell in str(error) for tell in _TELLS)
    return told or is_full(error.__cause__)


def disk_full(error: BaseException, place: str | Path, what: str) -> DiskFull | None:
    """The error of ours for one that means that a disk is full; None if it means something else.

    Args:
        error: of the system or a library.
        place: where something was written, for an error that names no file.
        what: could not be done.
    """
    if isinstance(error, DiskFull):
        return error
    return DiskFull(f"no space left on device: {_file(error) or place}; {what}") if is_full(error) else None


@contextmanager
def naming(place: str | Path) -> Iterator[None]:
    """Have an error that means that the disk is full name a file, which errors of libraries and of writing do not.

    Raises:
        OSError: the disk is full; any other error as it is.
    """
    try:
        yield
    except (OSError, DeltaError) as error:
        if not is_full(error) or _file(error) is not None:
            raise
        number = errno.ENOSPC if not isinstance(error, OSError) or error.errno is None else error.errno
        raise OSError(number, os.strerror(number), str(place)) from error


def _file(error: BaseException) -> str | None:
    """The file that an error tells of."""
    if isinstance(error, OSError) and error.filename is not None:
        return os.fsdecode(error.filename)
    named = _IN_QUOTES.search(str(error))
    return named[1] if named else None
