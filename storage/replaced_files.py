"""Missing files of a corpus: replaced by `parquetry forget`, or lost.

A reader lists the files first. Files that were replaced since are no longer named by the newest version of their table,
and what they held for others is in files that are: reading again from there is enough.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import TypeVar

from parquetry.errors import DamagedCorpus, FilesGaveWay, StorageError
from parquetry.storage.files.layout import TABLES, layout_of

Result = TypeVar("Result")
TRIES = 8
"""attempts at a complete read before giving up because files keep being replaced"""
_MISSING = (
    re.compile(r'Cannot open file "([^"]+\.parquet)": No such file'),
    re.compile(r'No files found that match the pattern "([^"]+\.parquet)"'),
    re.compile(r"FileNotFoundError: (?:\[Errno 2\] )?.*?((?:\w+://|/)[^\s'\"]+\.parquet)"),
)
"""DuckDB's messages for a missing local file and for one of an object store"""


def missing_file(error: Exception) -> str | None:
    """Return the Parquet file that an error of DuckDB reports as missing; None for any other error."""
    found = (each.search(str(error)) for each in _MISSING)
    return next((match[1] for match in found if match), None)


def missing_file_error(file: str) -> StorageError:
    """Return the error that explains why a file of a corpus is missing.

    Args:
        file: path or URL, as it was listed.
    """
    from parquetry.storage.lake.commits import files_of, open_table

    folder, name = posixpath.split(file)
    root, table = posixpath.split(folder)
    known = next((each for each in TABLES if each == table), None)
    if known is None:
        return StorageError(f"the corpus cannot be read: {file} is not there")
    layout = layout_of(root)
    if layout.shard(known, name) in files_of(open_table(layout, known)):
        return DamagedCorpus(f"the corpus is damaged: {file} is missing; `parquetry doctor` tells what is damaged")
    return FilesGaveWay(f"{file} gave way to others while it was read (`forget` and `vacuum` do that); run it again")


def reread(read: Callable[[], Result]) -> Result:
    """Return the result of a read; start again while files are being replaced.

    Args:
        read: reads from the newest version on each call.

    Raises:
        FilesGaveWay: files are still being replaced after the last attempt.
    """
    for _ in range(TRIES - 1):
        try:
            return read()
        except FilesGaveWay:
            continue
    return read()
