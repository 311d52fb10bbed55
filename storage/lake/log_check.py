"""Find damage in the log of a local Delta table, which delta-rs would read as a table with fewer rows.

Opening a table checks the files that its version is read from: the checkpoint below it and the commits from there on.
Each program checks each file once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from parquetry.errors import DamagedCorpus
from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.seals import fault
from parquetry.storage.lake.staging import (
    CHECKPOINT,
    COMMIT,
    COPY,
    checksum_name,
    commit_name,
    copy_name,
    names_in,
    needed,
    number_of,
)

MISSING = "is missing, and a later commit or a copy of it is there"


def check_log(layout: Layout, table: Table, version: int | None = None) -> None:
    """Check the files that a version of a local table is read from, and the commits after it.

    Args:
        layout: layout of the corpus.
        table: the table to open.
        version: None for the newest.

    Raises:
        DamagedCorpus: a file of the log is damaged or missing.
        OSError: the log cannot be read.
    """
    log = Path(layout.log(table))
    if not log.is_dir():
        return
    names = names_in(log)
    read = needed(names, version)
    for name in read:
        wrong = _checkpoint_fault(log, name, names) if CHECKPOINT.fullmatch(name) else _seen(log / name)
        if wrong is not None:
            raise DamagedCorpus(f"the corpus is damaged: {log / name} {wrong}")
    begin = next((number_of(name) + 1 for name in read if CHECKPOINT.fullmatch(name)), 0)
    for name in _missing(log, names, begin):
        raise DamagedCorpus(f"the corpus is damaged: {log / name} {MISSING}")


def log_faults(layout: Layout, table: Table) -> dict[str, str]:
    """Return the faulty files in the log of a local table, also below checkpoints: file name -> description.

    A missing commit is a fault unless a checkpoint covers it.

    Raises:
        OSError: the log cannot be read.
    """
    log = Path(layout.log(table))
    names = sorted(entry.name for entry in log.iterdir()) if log.is_dir() else []
    looks = {name: _seen(log / name) for name in names if COMMIT.fullmatch(name)}
    looks |= {name: _checkpoint_fault(log, name, names) for name in names if CHECKPOINT.fullmatch(name)}
    found = {name: wrong for name, wrong in looks.items() if wrong is not None}
    whole = [number_of(name) for name in names if CHECKPOINT.fullmatch(name) and name not in found]
    return found | dict.fromkeys(_missing(log, names, max(whole, default=-1) + 1), MISSING)


def whole_copy(log: Path, name: str) -> bytes | None:
    """Return the second copy of a commit if it exists and is intact."""
    with suppress(FileNotFoundError):
        content = (log / copy_name(name)).read_bytes()
        return content if fault(content) is None else None
    return None


def _missing(log: Path, names: Sequence[str], begin: int) -> Iterator[str]:
    """Yield the missing commits from `begin` on: later ones exist, or a second copy of the newest."""
    oldest = commit_name(begin)
    commits = {number_of(name) for name in names if name >= oldest and COMMIT.fullmatch(name)}
    newest = max(commits, default=-1)
    copies = [number_of(name) for name in names if name.endswith(".copy") and COPY.fullmatch(name)]
    ahead = [number for number in copies if number > newest and whole_copy(log, commit_name(number))]
    for number in range(begin, max([newest, *ahead]) + 1):
        # The commit may have been made while the names were listed.
        if number not in commits and not (log / commit_name(number)).exists():
            yield commit_name(number)


def _checkpoint_fault(log: Path, name: str, names: list[str]) -> str | None:
    sum_name = checksum_name(name)
    if sum_name not in names:
        # The commit is of an earlier program.
        return None
    wanted = (log / sum_name).read_text("ascii", "replace").strip()
    return _changed(log / name, wanted)


def _seen(commit: Path) -> str | None:
    found = commit.stat()
    return _commit_fault(str(commit), found.st_size, found.st_mtime_ns, found.st_ino)


def _changed(checkpoint: Path, wanted: str) -> str | None:
    found = checkpoint.stat()
    digest = _digest(str(checkpoint), found.st_size, found.st_mtime_ns, found.st_ino)
    return None if digest == wanted else "is not what was written: its checksum differs"


@lru_cache(maxsize=16_384)
def _commit_fault(path: str, _size: int, _changed_at: int, _inode: int) -> str | None:
    """Return the fault in a commit, if any; an unchanged file is not read again."""
    return fault(Path(path).read_bytes())


@lru_cache(maxsize=1024)
def _digest(path: str, _size: int, _changed_at: int, _inode: int) -> str:
    with open(path, "rb") as stream:  # noqa: PTH123
        return hashlib.file_digest(stream, "sha256").hexdigest()
