"""Write commits of local Delta tables so that they are on disk before they become visible.

delta-rs writes a commit and names it without syncing either: after a power cut the name may refer to an empty file,
which delta-rs reads as a version without changes. Therefore delta-rs commits to a copy of the log, made of hard links,
in a folder that no reader opens. The commit written there is sealed with a checksum, synced, and linked to its name in
the log; the link fails if another writer was first.

The newest commit is kept twice, because its loss could not be detected otherwise.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from parquetry.errors import StorageError, first_line
from parquetry.storage.files.durable import make_folder, replace, sync
from parquetry.storage.files.full_disk import naming
from parquetry.storage.files.layout import LOG, Layout, Table
from parquetry.storage.lake.seals import sealed

CHECKPOINT_EVERY = 25
"""number of commits between checkpoints; a table is opened by reading the newest checkpoint and the commits after it"""
ABANDONED_SECONDS = 3600
"""age in seconds after which a staging folder counts as left behind by a program that died"""
_log = logging.getLogger("parquetry")
COMMIT = re.compile(r"(\d{20})\.json")
COPY = re.compile(r"(\d{20})\.json\.copy")
"""name of the second copy of the newest commit"""
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


def commit_durably(layout: Layout, table: Table, write: Callable[[str], object], version: int | None = None) -> int:
    """Make a commit to a local table; it is on disk once this returns.

    Args:
        layout: layout of the corpus.
        table: to commit to.
        write: makes at most one commit in a copy of the table, whose folder it receives; called again if another writer
            was first.
        version: the version on which the commit was decided; None for the newest.

    Returns:
        The version of the commit; -1 if none was made.

    Raises:
        OSError: the commit cannot be written; nothing was committed.
        StorageError: the commit was made, but the disk does not confirm it.
    """
    log = Path(layout.log(table))
    with naming(log):
        make_folder(log)
        # The names of the shards in the commit are on disk by now.
        sync(layout.table(table))
        made = None
        while made is None:
            with _copied(layout, table, version) as copy:
                ready = _written(copy, write)
                if ready is None:
                    return -1
                try:
                    os.link(ready, log / ready.name)
                except FileExistsError:
                    continue
                made = number_of(ready.name)
                _confirm(log / ready.name)
                _keep_copy(ready, log)
    if made and made % CHECKPOINT_EVERY == 0:
        try:
            make_checkpoint(layout, table)
        except (DeltaError, OSError) as error:
            # The commit is made; without a checkpoint the table only opens more slowly.
            _log.warning("no checkpoint of %s: %s", layout.table(table), first_line(error))
    return made


def _written(copy: Path, write: Callable[[str], object]) -> Path | None:
    """Write a commit to a copy of a table; return its file, synced, or None if none was made."""
    known = set(names_in(copy / LOG))
    write(str(copy))
    new = [name for name in names_in(copy / LOG) if name not in known and COMMIT.fullmatch(name)]
    if not new:
        return None
    (name,) = new
    ready = copy / name
    ready.write_bytes(sealed((copy / LOG / name).read_bytes()))
    sync(ready)
    return ready


def _confirm(commit: Path) -> None:
    """Sync the name of a commit to disk."""
    try:
        sync(commit.parent)
    except OSError as error:
        what = f"{commit} is written, and the disk does not confirm it: {error.strerror or error}"
        raise StorageError(what) from error


def _keep_copy(commit: Path, log: Path) -> None:
    """Keep two copies of the newest commit, which is on disk, and one of each earlier commit.

    A copy that is lost in a power cut, or truncated, does no harm; so the write does not wait for the disk.
    """
    copy = commit.with_name(copy_name(commit.name))
    try:
        shutil.copyfile(commit, copy)
        copy.replace(log / copy.name)
        for name in names_in(log):
            if name.endswith(".copy") and name < copy.name and COPY.fullmatch(name):
                (log / name).unlink(missing_ok=True)
    except OSError as error:
        # The commit is made.
        _log.warning("no second copy of %s: %s", log / commit.name, error.strerror or error)


def make_checkpoint(layout: Layout, table: Table) -> None:
    """Write the state of a local table into one file, so that opening it does not read all commits.

    Raises:
        DeltaError, OSError: the checkpoint cannot be written; the table is unchanged.
    """
    log = Path(layout.log(table))
    with _copied(layout, table, None) as copy:
        DeltaTable(str(copy)).create_checkpoint()
        made = copy / LOG
        newest = max(name for name in names_in(made) if CHECKPOINT.fullmatch(name))
        digest = copy / checksum_name(newest)
        digest.write_text(hashlib.sha256((made / newest).read_bytes()).hexdigest())
        replace(digest, log / digest.name)
        # Readers find it by its name; a pointer file would be one more that can be damaged.
        replace(made / newest, log / newest)


def commit_name(version: int) -> str:
    """Return the file name of a commit."""
    return f"{version:020}.json"


def copy_name(commit: str) -> str:
    """Return the file name of the second copy of a commit."""
    return f"{commit}.copy"


def checksum_name(checkpoint: str) -> str:
    """Return the name of the file with the SHA-256 of a checkpoint."""
    return checkpoint.replace(".parquet", ".sha256")


def needed(names: Sequence[str], version: int | None) -> list[str]:
    """Return the log files that a version is read from, and the commits after it.

    Args:
        names: names of all files of the log.
        version: None for the newest.
    """
    checkpoints = [name for name in names if name.endswith(".checkpoint.parquet") and CHECKPOINT.fullmatch(name)]
    bases = [name for name in checkpoints if version is None or number_of(name) <= version]
    first = max(map(number_of, bases), default=-1)
    # Numbers are as long as each other, and most commits are older.
    oldest = commit_name(max(first, 0))
    commits = [name for name in names if name >= oldest and COMMIT.fullmatch(name)]
    return [*(name for name in bases if number_of(name) == first), *sorted(commits)]


def clear_abandoned(layout: Layout) -> None:
    """Delete the staging folders of programs that died during a commit."""
    with suppress(FileNotFoundError), os.scandir(layout.staging) as found:
        for entry in found:
            if time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(entry.path, ignore_errors=True)


def _lend(file: Path, copy: Path) -> None:
    """Link a file to a second place. A commit of another user may only be copied, not linked."""
    try:
        os.link(file, copy)
    except PermissionError:
        shutil.copyfile(file, copy)


def names_in(folder: str | Path) -> list[str]:
    """Return the names of the files in a folder; a log has thousands, of which no path is made."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def number_of(name: str) -> int:
    """Return the version of a log file."""
    return int(name.partition(".")[0])


@contextmanager
def _copied(layout: Layout, table: Table, version: int | None) -> Iterator[Path]:
    """Create a table folder with as much of the log as a commit needs."""
    Path(layout.staging).mkdir(exist_ok=True)
    copy = Path(mkdtemp(prefix=f"{table}-", dir=layout.staging))
    try:
        (copy / LOG).mkdir()
        log = Path(layout.log(table))
        for name in needed(names_in(log), version):
            _lend(log / name, copy / LOG / name)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)
