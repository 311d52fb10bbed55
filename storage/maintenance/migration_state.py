"""Progress of a migration, and agreement of the settings with those that are over; calls no service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from parquetry.planning.migration import Migration, as_json, concerns, sides
from parquetry.settings.sections import Settings
from parquetry.storage.database import open_duckdb, reading, sql_list, tuples
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.candidates import published_namespaces
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.migrations import brought_up, outdated_settings, read_migrations
from parquetry.storage.lake.snapshot_views import NEWEST, scan


@dataclass(frozen=True, slots=True)
class MigrationState:
    """The migration that is being built."""

    migration: Migration
    documents: int
    """documents and entries with text in the namespaces that it concerns"""
    built: int
    """those that are built, or need nothing"""
    chunks: int
    """chunks that were built"""

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry status --json` prints."""
        return {**as_json(self.migration), "documents": self.documents, "built": self.built, "chunks": self.chunks}


@dataclass(frozen=True, slots=True)
class MigrationsState:
    """The migrations of a corpus as an operator needs to know them."""

    active: MigrationState | None
    outdated: str | None
    """line on settings that say something older than the corpus; None if they agree"""


def migrations_state(settings: Settings) -> MigrationsState:
    """Return the state of the migrations of a corpus.

    Raises:
        StorageError: the corpus cannot be read.
    """
    active = read_migrations(layout_of(settings.corpus.root)).active
    state = None if active is None else _state(active, settings, Lake(settings.corpus.root).snapshot())
    return MigrationsState(state, outdated_settings(settings))


def _state(migration: Migration, settings: Settings, snapshot: Snapshot) -> MigrationState:
    before, after = sides(brought_up(settings, quietly=True), migration)
    namespaces = [name for name in published_namespaces(snapshot) if concerns(before, after, name)]
    tables = {table: scan(table, snapshot.files[table]) for table in ("documents", "texts", "chunks")}
    same_chunks = before.chunking == after.chunking
    there = f"list_contains({sql_list(migration.models[1:])}, embedder)" if same_chunks else "false"
    with open_duckdb() as connection, reading():
        filesystem_at(snapshot.layout.root).attach(connection)
        ((documents, built, chunks),) = tuples(
            connection,
            f"""WITH current AS (
                SELECT xor(revision, $1::BIGINT) AS candidate, embedder
                FROM ({NEWEST.format(history=f"({tables['documents']})")})
                WHERE revision <> 0 AND list_contains({sql_list(namespaces)}, namespace)
            ), held AS (
                SELECT revision AS candidate, count(*) AS chunks FROM ({tables["chunks"]})
                WHERE revision IN (SELECT candidate FROM current) GROUP BY ALL
            ), whole AS (
                SELECT * FROM held WHERE candidate IN (SELECT revision FROM ({tables["texts"]}))
            )
            SELECT (SELECT count(*) FROM current),
                (SELECT count(*) FROM current WHERE candidate IN (SELECT candidate FROM whole) OR {there}),
                (SELECT coalesce(sum(chunks), 0)::BIGINT FROM held)""",
            [migration.mask],
        )
    return MigrationState(migration, documents, built, chunks)
