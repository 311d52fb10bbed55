"""The migrations of a corpus: rows of the table `migrations`, which its first one makes.

The publish that switches carries a Delta transaction of the migration, so that the switch and its record are one
commit; the row that says so follows it, and may be missing after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from deltalake import Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from parquetry.errors import PublishConflict, RefusedError, SettingsError, StorageError
from parquetry.planning.migration import (
    Migration,
    Migrations,
    SettingChange,
    State,
    followed,
    outdated_line,
    parse_target,
    target_column,
)
from parquetry.settings.sections import Settings
from parquetry.storage.files.filesystem import one_line_error
from parquetry.storage.files.layout import Layout, layout_of
from parquetry.storage.lake.change_log import Changes, append_change, read_changes
from parquetry.storage.lake.commits import commit, is_conflict, open_table
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.lake.shards import Shard

log = logging.getLogger("parquetry")
_UNKNOWN = "which embedder its migrations led to is not known"


def switch_transaction(migration: Migration) -> str:
    """Return the id of the Delta transaction with which `documents` was switched to a migration."""
    return f"migration:{migration.key}"


def read_migrations(layout: Layout) -> Migrations:
    """Return the migrations of a corpus.

    Raises:
        DamagedCorpus: the table is damaged.
        StorageError: it cannot be read.
    """
    return _state(layout, read_changes(layout, "migrations", _UNKNOWN))


def begin_migration(layout: Layout, migration: Migration) -> None:
    """Record that a migration is being built.

    Raises:
        SettingsError: another one is being built.
        PublishConflict, StorageError: it cannot be recorded.
    """

    def decide(known: Migrations) -> Migration:
        if known.active is not None:
            raise SettingsError(
                f"another migration of {layout.root} is being built ({known.active}); switch to it "
                "(`parquetry reindex --switch`) or abandon it (`parquetry reindex --abandon`) first"
            )
        return migration

    _change(layout, decide)


def end_migration(layout: Layout, key: str, state: State, at: datetime) -> Migration:
    """Record that the migration that is being built was switched to, or abandoned.

    Args:
        layout: layout of the corpus, open for writing.
        key: key of the migration.
        state: its state from now on.
        at: present time, UTC.

    Raises:
        SettingsError: it is not being built.
        PublishConflict, StorageError: it cannot be recorded.
    """

    def decide(known: Migrations) -> Migration:
        # The row that a switch leaves is missing after a crash.
        active = next((each for each in known.all if each.key == key and each.state != "abandoned"), None)
        if active is None or (state == "abandoned" and active.state == "switched"):
            raise SettingsError(f"the migration of {layout.root} is not being built any more")
        return replace(active, state=state, at=at)

    return _change(layout, decide)


def brought_up(settings: Settings, *, quietly: bool = False) -> Settings:
    """Return settings brought to where the migrations of their corpus led, told in the log if they say otherwise.

    Args:
        settings: settings with the root of the corpus, which need not exist.
        quietly: True to leave the line out.

    Raises:
        DamagedCorpus, StorageError: the corpus cannot be read.
    """
    settings, outdated = _followed(settings)
    if outdated and not quietly:
        log.warning("%s", outdated_line(settings.corpus.root, outdated))
    return settings


def outdated_settings(settings: Settings) -> str | None:
    """Return the line on settings that say something older than the corpus; None if they agree.

    Raises:
        DamagedCorpus, StorageError: the corpus cannot be read.
    """
    settings, outdated = _followed(settings)
    return outdated_line(settings.corpus.root, outdated) if outdated else None


def _followed(settings: Settings) -> tuple[Settings, tuple[SettingChange, ...]]:
    return followed(settings, read_migrations(layout_of(settings.corpus.root)).switched)


def register_candidates(lake: Lake, migration: Migration, texts: Shard, run_id: str, number: int) -> None:
    """Register the texts of candidates; they stay invisible.

    Args:
        lake: the corpus, open for writing.
        migration: the migration that is being built.
        texts: shard of the table `texts`.
        run_id: id of the run.
        number: number of such shards that were registered before.

    Raises:
        RefusedError: another process builds the migration at the same time; every text would be there twice.
        StorageError: writing failed.
    """
    layout, transaction = lake.layout, switch_transaction(migration)
    other = RefusedError("another process is building this migration; let it end, or stop it")
    try:
        table = open_table(layout, "texts")
        if (table.transaction_version(transaction) or 0) != number:
            raise other
        next_number = Transaction(transaction, number + 1)
        commit(layout, "texts", [texts], {"run_id": run_id}, transactions=[next_number], version=table.version())
    except CommitFailedError as error:
        if is_conflict(error):
            raise other from error
        raise StorageError(f"writing to {layout.table('texts')} failed: {one_line_error(error)}") from error
    except (DeltaError, OSError) as error:
        raise StorageError(f"writing to {layout.table('texts')} failed: {one_line_error(error)}") from error


def registered_candidates(layout: Layout, migration: Migration) -> int:
    """Return the number of shards of texts that were registered for a migration."""
    try:
        return open_table(layout, "texts").transaction_version(switch_transaction(migration)) or 0
    except (DeltaError, OSError) as error:
        raise StorageError(f"{layout.table('texts')} cannot be read: {one_line_error(error)}") from error


def _change(layout: Layout, decide: Callable[[Migrations], Migration]) -> Migration:
    def attempt(_: PublishConflict | None) -> Migration:
        changes = read_changes(layout, "migrations", _UNKNOWN)
        decided = decide(_state(layout, changes))
        values = {
            "key": decided.key,
            "state": decided.state,
            "target": target_column(decided),
            "at": decided.at.astimezone(UTC),
        }
        append_change(layout, "migrations", changes, values, "another program changed a migration meanwhile")
        return decided

    return publish_with_retry(attempt, "the migration is as before; try again")


def _state(layout: Layout, changes: Changes) -> Migrations:
    found: dict[str, Migration] = {}
    for row in changes.rows:
        begun = found.get(row["key"])
        if begun is None:
            found[row["key"]] = Migration(row["key"], *parse_target(row["target"]), row["at"], row["state"])
        else:
            found[row["key"]] = replace(begun, state=row["state"])
    migrations = tuple(found.values())
    is_open = any(each.state != "switched" for each in migrations)
    return Migrations(_as_published(layout, migrations) if is_open else migrations)


def _as_published(layout: Layout, migrations: Sequence[Migration]) -> tuple[Migration, ...]:
    """Return migrations as switched to if `documents` says so, whatever their rows say."""
    try:
        documents = open_table(layout, "documents")
        published = {each.key for each in migrations if documents.transaction_version(switch_transaction(each))}
    except (DeltaError, OSError) as error:
        raise StorageError(f"{layout.table('documents')} cannot be read: {one_line_error(error)}") from error
    return tuple(replace(each, state="switched") if each.key in published else each for each in migrations)
