"""The Delta tables of a corpus: open, read, publish, look back, restore.

A publish is one commit to `documents`. Shards are registered before it and stay invisible until a current row names
their revision, so a reader sees all of a publish or nothing of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from knowledge.errors import PublishConflict, SettingsError, StorageError, first_line
from knowledge.model import DocumentRow, Failure
from storage import schema
from storage.layout import TABLES, Layout, Table, layout_of
from storage.shards import Shard, is_whole, write_shard


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The corpus as of one version of `documents`: the files to read, fixed."""

    layout: Layout
    version: int
    files: Mapping[Table, tuple[str, ...]]
    """absolute paths of the Parquet files of each table"""


@dataclass(frozen=True, slots=True)
class Publish:
    """One entry of the history."""

    version: int
    at: datetime
    """UTC"""
    operation: str
    run_id: str | None
    documents: int
    """rows written"""


class Lake:
    """The tables at one root.

    Args:
        root: folder of the corpus.
        create: the corpus is to be written; make the tables if there are none yet.

    Raises:
        SettingsError: there is no corpus here (and none was to be made), or a newer program wrote it.
        StorageError: it cannot be read, or not be made or written.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        self.layout = layout_of(root)
        with _translated(f"corpus {self.layout.root} cannot be opened"):
            if self.exists(root):
                self._check_version()
            elif not create:
                raise SettingsError(
                    f"no corpus at {self.layout.root}; `parquetry refresh` makes one, --corpus names another"
                )
            if create:
                self._create()
                self._check_writable()

    @staticmethod
    def exists(root: str) -> bool:
        """Whether there is a corpus at a place."""
        with _translated(f"corpus {root} cannot be opened"):
            return bool(DeltaTable.is_deltatable(layout_of(root).table("documents")))

    def _create(self) -> None:
        """Make the tables that are not there: all of a new corpus, and those that an older program did not know."""
        for table in TABLES:
            if DeltaTable.is_deltatable(self.layout.table(table)):
                continue
            description = {"parquetry_schema": schema.SCHEMA_VERSION}
            DeltaTable.create(
                self.layout.table(table),
                schema=schema.SCHEMAS[table],
                mode="ignore",
                name=table,
                description=json.dumps(description),
            )

    def _check_version(self) -> None:
        description = DeltaTable(self.layout.table("documents")).metadata().description
        try:
            version = int(json.loads(description)["parquetry_schema"])
        except (TypeError, ValueError, KeyError) as error:
            raise SettingsError(
                f"{self.layout.root} holds a Delta table `documents` that is not a Parquetry corpus; "
                "choose another folder with --corpus"
            ) from error
        if version > schema.SCHEMA_VERSION:
            raise SettingsError(
                f"corpus {self.layout.root} has schema {version}, newer than this program understands "
                f"({schema.SCHEMA_VERSION}); install a newer Parquetry"
            )

    def _check_writable(self) -> None:
        """Find out before anything is extracted and paid for."""
        folders = [Path(self.layout.table(table)) for table in TABLES]
        for folder in (each for table in folders for each in (table, table / "_delta_log")):
            if not os.access(folder, os.W_OK | os.X_OK):
                raise StorageError(f"corpus {self.layout.root} cannot be written: no permission to write to {folder}")

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The files of the corpus, as of a version of `documents`.

        Args:
            version: as `history` shows; None for the newest.

        Raises:
            SettingsError: there is no such version.
        """
        with _translated(f"corpus {self.layout.root} cannot be read"):
            # Opened first: shards are registered before the rows that name them.
            documents = self._documents(version)
            files: dict[Table, tuple[str, ...]] = {"documents": _files(documents)}
            for table in TABLES:
                if table not in files:
                    files[table] = self._files_of(table)
            return Snapshot(self.layout, documents.version(), files)

    def _files_of(self, table: Table) -> tuple[str, ...]:
        try:
            return _files(DeltaTable(self.layout.table(table)))
        except TableNotFoundError:
            if table != "searches":
                raise
            # A corpus of before this table was known.
            return ()

    def _documents(self, version: int | None) -> DeltaTable:
        path = self.layout.table("documents")
        if version is None:
            return DeltaTable(path)
        newest = DeltaTable(path).version()
        if not 0 <= version <= newest:
            raise SettingsError(f"corpus {self.layout.root} has no version {version}; it has 0 to {newest}")
        return DeltaTable(path, version=version)

    def orphans(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Shards of chunks that a crashed run left behind: whole files that no commit names.

        Their rows can never become visible, but the vectors in them were paid for and are found by text hash. A file
        that a power failure cut short is no Parquet file and is left out.
        """
        registered = set(snapshot.files["chunks"])
        found = sorted(str(path) for path in Path(self.layout.table("chunks")).glob("*.parquet"))
        return tuple(path for path in found if path not in registered and is_whole(path))

    def register(self, shards: Sequence[Shard], run_id: str) -> None:
        """Add finished shards of `texts` and `chunks` to their tables, one commit each; they stay invisible."""
        for table in ("texts", "chunks"):
            members = [shard for shard in shards if shard.table == table and shard.rows]
            if members:
                self._append(table, members, run_id)

    def publish(self, base: Snapshot, rows: Sequence[DocumentRow], run_id: str) -> int:
        """Make a run visible: commit its rows to `documents`.

        Args:
            base: the snapshot that the rows were planned from.
            rows: next rows of the documents that change; their sequence is set here.
            run_id: of the run.

        Returns:
            The new version of `documents`; with no rows, the version of `base` and nothing is written.

        Raises:
            PublishConflict: somebody else published to one of the namespaces since `base`.
            StorageError: the commit failed; nothing became visible.
        """
        if not rows:
            return base.version
        with _translated(f"publishing to {self.layout.root} failed, nothing was published"):
            table = DeltaTable(self.layout.table("documents"), version=base.version)
            keys = {namespace: f"ns:{namespace}" for namespace in sorted({row.namespace for row in rows})}
            next_sequence = {name: (table.transaction_version(key) or 0) + 1 for name, key in keys.items()}
            numbered = [replace(row, sequence=next_sequence[row.namespace]) for row in rows]
            name = f"{run_id}-{time.time_ns():x}.parquet"
            shard = write_shard(self.layout, "documents", name, schema.documents_table(numbered))
            transactions = [Transaction(keys[name], number) for name, number in next_sequence.items()]
            properties = CommitProperties(
                app_transactions=transactions, custom_metadata={"run_id": run_id, "rows": str(len(rows))}
            )
            try:
                table.create_write_transaction([_add(shard)], "append", schema.DOCUMENTS, commit_properties=properties)
            except CommitFailedError as error:
                Path(self.layout.shard("documents", name)).unlink(missing_ok=True)
                if "transaction" not in str(error).lower():
                    raise
                namespaces = ", ".join(keys)
                raise PublishConflict(f"another run published to {namespaces} meanwhile: {error}") from error
            return DeltaTable(self.layout.table("documents")).version()

    def record(self, run: Mapping[str, Any], failures: Sequence[Failure]) -> None:
        """Append a run's row and the documents that failed in it."""
        run_id = str(run["run_id"])
        name = f"{run_id}-{time.time_ns():x}.parquet"
        with _translated(f"the run could not be recorded in {self.layout.root}; what it published stands"):
            if failures:
                rows = schema.failures_table(failures)
                self._append("failures", [write_shard(self.layout, "failures", name, rows)], run_id)
            table = schema.RUNS.empty_table().from_pylist([dict(run)], schema=schema.RUNS)
            self._append("runs", [write_shard(self.layout, "runs", name, table)], run_id)

    def record_searches(self, searches: Sequence[Mapping[str, Any]]) -> None:
        """Append searches that were answered, in one commit.

        Args:
            searches: rows of the table `searches`.

        Raises:
            StorageError: they could not be written.
        """
        with _translated(f"searches could not be recorded in {self.layout.root}"):
            self._create()
            table = schema.SEARCHES.empty_table().from_pylist([dict(row) for row in searches], schema=schema.SEARCHES)
            name = f"searches-{time.time_ns():x}-{os.getpid():x}.parquet"
            self._append("searches", [write_shard(self.layout, "searches", name, table)], None)

    def _append(self, table: Table, shards: Sequence[Shard], run_id: str | None) -> None:
        with _translated(f"writing to {self.layout.table(table)} failed, nothing was published"):
            DeltaTable(self.layout.table(table)).create_write_transaction(
                [_add(shard) for shard in shards],
                "append",
                schema.SCHEMAS[table],
                commit_properties=CommitProperties(custom_metadata={"run_id": run_id} if run_id else {}),
            )

    def history(self, limit: int | None = None) -> list[Publish]:
        """The publishes, newest first."""
        with _translated(f"corpus {self.layout.root} cannot be read"):
            table = DeltaTable(self.layout.table("documents"))
            return [
                Publish(
                    version=int(entry["version"]),
                    at=datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
                    operation="create" if entry["operation"].startswith("CREATE") else "publish",
                    run_id=entry.get("run_id"),
                    documents=int(entry.get("rows") or 0),
                )
                for entry in table.history(limit)
            ]


def _files(table: DeltaTable) -> tuple[str, ...]:
    return tuple(sorted(unquote(uri.removeprefix("file://")) for uri in table.file_uris()))


def _add(shard: Shard) -> AddAction:
    statistics = json.dumps({"numRecords": shard.rows})
    return AddAction(shard.name, shard.size, {}, int(time.time() * 1000), True, statistics)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Say in one line what an error of the storage libraries means."""
    try:
        yield
    except (TableNotFoundError, DeltaError) as error:
        raise StorageError(f"{what}: {first_line(error)}") from error
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or first_line(error)}") from error
