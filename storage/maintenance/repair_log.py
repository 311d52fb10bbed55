"""Rewrite damaged commits of local tables from other records of the shards that they named.

Only the file of a commit is lost, not its content: the shards that no other commit names exist, the search index knows
the shards of its version, and the rows of a shard of `documents` name their publish.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from parquetry.plural import counted
from parquetry.process_folder import process_folder
from parquetry.storage.files.durable import replace
from parquetry.storage.files.filesystem import sha256_of
from parquetry.storage.files.layout import LOG, TABLES, Layout, Table, is_compacted
from parquetry.storage.lake.commits import SHARDS
from parquetry.storage.lake.damaged_shards import faulty_columns, is_whole
from parquetry.storage.lake.lineage import replaced_by
from parquetry.storage.lake.log_check import log_faults, whole_copy
from parquetry.storage.lake.seals import sealed
from parquetry.storage.lake.staging import CHECKPOINT, COMMIT, checksum_name, commit_name, number_of
from parquetry.storage.lake.tables import create_table
from parquetry.storage.maintenance.salvage import Salvage


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a repair."""

    what: str
    """a sentence, shown before the step is carried out"""
    do: Callable[[], object]
    lost: str = ""
    """data that nothing in the corpus can restore, and what to do about it"""


@dataclass
class _Log:
    """The content of the readable commits of a table."""

    layout: Layout
    table: Table
    bad: Mapping[str, str]
    """damaged files of the log, and missing commits -> description"""
    newest: int = -1
    named: set[str] = field(default_factory=set)
    """files that were ever added to the table"""
    sequences: dict[int, dict[str, int]] = field(default_factory=dict)
    """version -> namespace -> number of the publish"""

    def __post_init__(self) -> None:
        folder = Path(self.layout.log(self.table))
        for each in sorted(folder.iterdir()) if folder.is_dir() else ():
            if COMMIT.fullmatch(each.name):
                self.newest = max(self.newest, number_of(each.name))
                if each.name not in self.bad:
                    self._read(number_of(each.name), map(json.loads, each.read_bytes().splitlines()))
            # Commits below a checkpoint may be gone.
            elif CHECKPOINT.fullmatch(each.name) and each.name not in self.bad:
                actions = pq.read_table(each, columns=["add", "txn"]).to_pylist()
                self._read(number_of(each.name), actions)

    def _read(self, number: int, actions: Iterable[dict[str, Any]]) -> None:
        for action in actions:
            if action.get("add"):
                self.named.add(unquote(action["add"]["path"]))
            if action.get("txn"):
                namespace = action["txn"]["appId"].removeprefix("ns:")
                self.sequences.setdefault(number, {})[namespace] = action["txn"]["version"]

    @property
    def lost(self) -> list[int]:
        """Return the versions with damaged or missing commits."""
        return sorted(number_of(name) for name in self.bad if COMMIT.fullmatch(name))

    def unnamed(self) -> list[str]:
        """Return the complete shards that no commit names, oldest run first."""
        folder = Path(self.layout.table(self.table))
        found = sorted(each.name for each in folder.glob("*.parquet") if each.name not in self.named)
        paths = {name: self.layout.shard(self.table, name) for name in found}
        return [name for name, path in paths.items() if is_whole(path) and not faulty_columns(path)]


def named_documents(layout: Layout) -> set[str]:
    """Return the files of `documents` that readable commits name."""
    return _Log(layout, "documents", log_faults(layout, "documents")).named


def log_steps(layout: Layout, salvage: Salvage | None) -> Iterator[Step]:
    """Yield the steps that repair the logs of a local corpus.

    Args:
        layout: layout of the corpus.
        salvage: an index, if there is one.
    """
    recorded = _recorded_versions(layout)
    for table in TABLES:
        yield from _copied_steps(layout, table)
        log = _Log(layout, table, log_faults(layout, table))
        for name in sorted(log.bad.keys() - {commit_name(number) for number in log.lost}):
            yield Step(f"drop {table}/_delta_log/{name}, which {log.bad[name]}", partial(_drop_checkpoint, log, name))
        known = salvage.files.get(table, frozenset()) if salvage else frozenset()
        if table == "documents":
            yield from _documents_steps(log, salvage, known, recorded)
        else:
            yield from _steps(log, known)


def _copied_steps(layout: Layout, table: Table) -> Iterator[Step]:
    """Yield steps that restore commits from their second copies."""
    log = Path(layout.log(table))
    for name, wrong in sorted(log_faults(layout, table).items()):
        if COMMIT.fullmatch(name) and (content := whole_copy(log, name)):
            what = f"put {table}/_delta_log/{name} back from its copy"
            yield Step(f"{what}, because it {wrong}", partial(_put, layout, table, name, content))


def _steps(log: _Log, known: frozenset[str]) -> Iterator[Step]:
    """Yield the steps for a table whose rows have no effect by themselves: all shards may be added in one commit."""
    unnamed = log.unnamed() if log.lost or known - log.named else []
    if log.lost:
        first, *others = log.lost
        yield _step(log, first, unnamed)
        for number in others:
            yield _step(log, number, [])
    elif left := [name for name in unnamed if name in known]:
        # The newest commit is gone; only the index has a record of it.
        yield _step(log, log.newest + 1, left)


def _documents_steps(
    log: _Log, salvage: Salvage | None, known: frozenset[str], recorded: Mapping[int, str]
) -> Iterator[Step]:
    """Yield the steps for `documents`, where each shard is a publish: shards not known to be published stay out."""
    lost = log.lost
    if salvage is not None and salvage.version > log.newest:
        missing = known - log.named
        on_disk = {each.name for each in Path(log.layout.table("documents")).glob("*.parquet")}
        # Otherwise an earlier copy of the corpus was restored, with fewer shards.
        if missing <= on_disk:
            lost += range(log.newest + 1, salvage.version + 1)
    if not lost:
        return
    unnamed = log.unnamed()
    for number in lost:
        if number == 0:
            yield _step(log, 0, [])
            continue
        if salvage is not None and salvage.version >= number:
            fitting = [name for name in unnamed if name in known]
        elif number in recorded:
            fitting = [name for name in unnamed if name.startswith(recorded[number])]
        else:
            fitting = unnamed
        before = _before(log, number)
        # A compaction is no publish: it is recognised by the record of its run, or by the index.
        compacted = [name for name in fitting if is_compacted(name) and fitting is not unnamed]
        if compacted:
            unnamed = [name for name in unnamed if name not in compacted]
            yield _step(log, number, compacted)
            continue
        chosen = [name for name in fitting if _follows(log, name, before)]
        if len(chosen) > 1:
            yield Step(
                f"leave documents/_delta_log/{commit_name(number)} as it is: it may have named {' or '.join(chosen)}",
                lambda: None,
                f"documents/_delta_log/{commit_name(number)}: put it back from a backup",
            )
            continue
        unnamed = [name for name in unnamed if name not in chosen]
        for name in chosen:
            log.sequences[number] = _sequences(log, name)
        yield _step(log, number, chosen)


def _step(log: _Log, number: int, names: Sequence[str]) -> Step:
    name = f"{log.table}/_delta_log/{commit_name(number)}"
    wrong = log.bad.get(commit_name(number), "is missing")
    write = partial(_write, log, number, names)
    if number == 0 and not names:
        return Step(f"write {name} again, which {wrong}: it named the columns of the table", write)
    if not names:
        lost = f"what {name} named: `parquetry refresh` and `sessions refresh` bring back what sources hold"
        return Step(
            f"write {name} again, which {wrong}: no shard is left that it may have named",
            write,
            lost if log.table == "documents" else "",
        )
    shards = f"{counted(len(names), 'shard')} that no other commit names"
    return Step(f"write {name} again, which {wrong}: it named {shards}", write)


def _before(log: _Log, number: int) -> dict[str, int]:
    """Return namespace -> number of its last publish before a version."""
    found: dict[str, int] = defaultdict(int)
    for version in sorted(log.sequences):
        if version < number:
            found.update(log.sequences[version])
    return found


def _follows(log: _Log, name: str, before: Mapping[str, int]) -> bool:
    """True if a shard of `documents` is the next publish of its namespaces."""
    return all(before.get(space, 0) + 1 == number for space, number in _sequences(log, name).items())


def _sequences(log: _Log, name: str) -> dict[str, int]:
    table = pq.read_table(log.layout.shard("documents", name), columns=["namespace", "sequence"])
    found: dict[str, int] = {}
    for row in table.to_pylist():
        found[row["namespace"]] = max(row["sequence"], found.get(row["namespace"], 0))
    return found


def _recorded_versions(layout: Layout) -> dict[int, str]:
    """Return version -> id of the run that published it, as far as the records can be read."""
    found: dict[int, str] = {}
    for shard in Path(layout.table("runs")).glob("*.parquet"):
        if is_whole(str(shard)) and not faulty_columns(str(shard)):
            for row in pq.read_table(shard, columns=["run_id", "version_before", "version_after"]).to_pylist():
                if row["version_after"] is not None and row["version_after"] != row["version_before"]:
                    found[row["version_after"]] = row["run_id"]
    return found


def _write(log: _Log, number: int, names: Sequence[str]) -> None:
    content = _first(log.table) if number == 0 else b""
    if not content or names:
        content += _joined(log, names, opening=not content)
    _put(log.layout, log.table, commit_name(number), sealed(content))


def _put(layout: Layout, table: Table, name: str, content: bytes) -> None:
    """Write a commit to a log, over a damaged one if there is one."""
    written = Path(layout.root) / f"{table}-{name}.unfinished"
    written.write_bytes(content)
    replace(written, Path(layout.log(table)) / name)


def _first(table: Table) -> bytes:
    """Return the commit that creates a table."""
    with TemporaryDirectory(dir=process_folder()) as place:
        create_table(place, table, None)
        return (Path(place) / LOG / commit_name(0)).read_bytes().rstrip(b"\n") + b"\n"


def _joined(log: _Log, names: Sequence[str], *, opening: bool) -> bytes:
    """Return the lines of a commit that adds shards to a table."""
    paths = {name: Path(log.layout.shard(log.table, name)) for name in names}
    moment = max((int(path.stat().st_mtime * 1000) for path in paths.values()), default=0)
    digests = {name: sha256_of(str(path)) for name, path in paths.items()}
    lines: list[dict[str, Any]] = []
    if opening:
        told: dict[str, Any] = {"timestamp": moment, "operation": "WRITE", SHARDS: json.dumps(digests)}
        if log.table == "documents" and names:
            rows = pq.read_table(paths[names[0]], columns=["run_id"])
            told |= {"run_id": rows["run_id"][0].as_py(), "rows": str(rows.num_rows)}
        lines.append({"commitInfo": told})
    for name, path in paths.items():
        stats = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
        add = {"path": name, "partitionValues": {}, "size": path.stat().st_size}
        lines.append({"add": {**add, "modificationTime": moment, "dataChange": True, "stats": stats}})
        # Without these, the rows of a compaction would be there twice.
        gone = sorted(replaced_by(str(path)) - {line["remove"]["path"] for line in lines if "remove" in line})
        lines += [{"remove": {"path": old, "deletionTimestamp": moment, "dataChange": True}} for old in gone]
        if log.table == "documents" and not is_compacted(name):
            counts = _sequences(log, name)
            lines += [{"txn": {"appId": f"ns:{space}", "version": count}} for space, count in sorted(counts.items())]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def _drop_checkpoint(log: _Log, name: str) -> None:
    folder = Path(log.layout.log(log.table))
    for each in (name, checksum_name(name)):
        (folder / each).unlink(missing_ok=True)
