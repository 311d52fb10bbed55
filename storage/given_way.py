"""What it means that a file of a corpus is not there any more: `parquetry forget` replaced it, or it is lost.

Whoever reads has listed the files before. Those that gave way are not named by the newest version of their table any
more, and what they held for others is in files that are: reading again from there is all it takes.
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
"""readings from the start before it is given up that files keep giving way"""
_MISSING = (
    re.compile(r'Cannot open file "([^"]+\.parquet)": No such file'),
    re.compile(r'No files found that match the pattern "([^"]+\.parquet)"'),
    re.compile(r"FileNotFoundError: (?:\[Errno 2\] )?.*?((?:\w+://|/)[^\s'\"]+\.parquet)"),
)
"""what DuckDB says, of a local file and of one that it was lent"""


def missing_file(error: Exception) -> str | None:
    """The Parquet file that an error of DuckDB says is not there; None if it says something else."""
    found = (each.search(str(error)) for each in _MISSING)
    return next((match[1] for match in found if match), None)


def why_missing(file: str) -> StorageError:
    """The error that tells what has become of a file of a corpus that is not there.

    Args:
        file: path or address, as it was listed.
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
    return FilesGaveWay(f"{file} gave way to others while it was read (`parquetry forget` does that); run it again")


def reread(read: Callable[[], Result]) -> Result:
    """What a reading gives; begun again while files give way to others meanwhile.

    Args:
        read: reads from the newest version whenever it is called.

    Raises:
        FilesGaveWay: they go on to.
    """
    for _ in range(TRIES - 1):
        try:
            return read()
        except FilesGaveWay:
            continue
    return read()
