"""A migration before it is built: its settings, models and namespaces, what it would do and cost. No Prefect here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from parquetry.chunking import fingerprint as chunk
from parquetry.embed.prices import Price
from parquetry.embed.registry import id_of, price_of
from parquetry.errors import SettingsError
from parquetry.ids import settings_hash
from parquetry.planning.migration import Migration, Value, changed, changes_to, concerns, sides
from parquetry.planning.rows import new_stamp
from parquetry.plural import counted
from parquetry.settings.sections import Settings, override
from parquetry.storage.files.layout import TABLES, layout_of
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.candidates import BuildAmount, BuildProgress, Target, candidates_of, published_namespaces
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.migrations import brought_up, end_migration, read_migrations
from parquetry.storage.lake.shards import write_shard
from parquetry.storage.replaced_files import reread
from parquetry.tasks.documents.models import Model, models_of

_LAST_SEQUENCE = 1 << 62
"""number of a publish that follows every other"""


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """Request to build a migration, or to switch to the one that is built."""

    settings: Settings
    values: tuple[tuple[str, Value], ...] = ()
    """keys of settings and their values after the migration; empty to go on with the one that is being built"""
    action: Literal["build", "switch"] = "build"

    @property
    def is_for_all(self) -> bool:
        """False: a migration reads no sources."""
        return False


@dataclass(frozen=True, slots=True)
class PlannedMigration:
    """A migration with what it needs."""

    migration: Migration
    begun: bool
    """True if it is recorded as being built"""
    before: Settings
    """settings before it"""
    settings: Settings
    """settings after it"""
    models: Mapping[str, Model] = field(default_factory=dict)
    """namespace that it concerns -> model after it"""
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class MigrationPreview:
    """Work and cost of a migration before it is built."""

    migration: Migration
    progress: BuildProgress
    amount: BuildAmount
    cost_usd: float | None
    """None if a price is unknown"""
    prices: Mapping[str, Price]
    """by embedder"""


def preview_migration(request: MigrationRequest) -> MigrationPreview:
    """Return what a migration would do and cost. Write nothing.

    Raises:
        ParquetryError: as for `run_migration`.
    """
    lake = Lake(request.settings.corpus.root)
    return reread(lambda: preview_of(planned_migration(request, lake.snapshot()), lake.snapshot()))


def preview_of(planned: PlannedMigration, snapshot: Snapshot) -> MigrationPreview:
    chunking = planned.settings.chunking
    with candidates_of(snapshot, planned.migration.mask, planned.targets) as candidates:
        progress = candidates.progress
        amount = candidates.amount(chunking.size, chunking.overlap, in_tokens=chunking.unit == "tokens")
    cost, prices = _cost(planned, amount)
    return MigrationPreview(planned.migration, progress, amount, cost, prices)


def _cost(planned: PlannedMigration, amount: BuildAmount) -> tuple[float | None, dict[str, Price]]:
    """Return the likely cost, by the highest price if there are several, and the prices."""
    prices: dict[str, Price] = {}
    for namespace in planned.models:
        name = planned.settings.embedder_of(namespace)
        found = price_of(name, planned.settings.embedding)
        if found is None:
            return None, prices
        prices[name] = found
    highest = max((price.usd_per_million_tokens for price in prices.values()), default=0.0)
    return amount.tokens * highest / 1e6, prices


def candidate_settings(settings: Settings) -> tuple[Settings, Settings]:
    """Return the settings before and after the migration that is being built.

    Raises:
        SettingsError: none is being built.
    """
    return sides(brought_up(settings, quietly=True), _active(settings))


def candidate_snapshot(settings: Settings, folder: Path) -> tuple[Snapshot, Settings]:
    """Return the corpus as a switch to the migration would publish it, with its search index and its settings.

    Args:
        settings: settings of the corpus.
        folder: empty folder for rows of `documents` and the index; both can be deleted when the snapshot is not used
            any more.

    Raises:
        SettingsError: no migration is being built, or not all of it is built yet.
        ParquetryError: the corpus cannot be read.
    """
    snapshot = Lake(settings.corpus.root).snapshot()
    planned = planned_migration(MigrationRequest(settings), snapshot)
    rows = layout_of(str(folder / "corpus"))
    with candidates_of(snapshot, planned.migration.mask, planned.targets) as candidates:
        left = candidates.progress.left
        if left:
            raise SettingsError(
                f"{counted(left, 'document')} of the migration to {planned.migration} are not built yet; give the "
                "`parquetry reindex` that began it again"
            )
        table = candidates.rows(dict.fromkeys(candidates.namespaces, _LAST_SEQUENCE), new_stamp())
    Path(rows.table("documents")).mkdir(parents=True)
    shard = write_shard(rows, "documents", "candidates.parquet", table)
    documents = (*snapshot.files["documents"], rows.shard("documents", shard.name))
    files = {**{name: snapshot.files[name] for name in TABLES}, "documents": documents}
    after = override(planned.settings, {"search": {"index_folder": str(folder / "index")}})
    made = Snapshot(snapshot.layout, snapshot.version + 1, files)
    IndexFolder(made.layout, after.search).refresh(made)
    return made, after


def abandon_migration(settings: Settings) -> Migration:
    """Give up the migration that is being built; what it built goes with the next compactions.

    Raises:
        SettingsError: none is being built.
        StorageError: this cannot be recorded.
    """
    active = _active(settings)
    lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
    return end_migration(lake.layout, active.key, "abandoned", new_stamp().at)


def _active(settings: Settings) -> Migration:
    Lake(settings.corpus.root)
    active = read_migrations(layout_of(settings.corpus.root)).active
    if active is None:
        raise SettingsError(
            f"no migration of {settings.corpus.root} is being built; `parquetry reindex --embeddings-only --embedder "
            "NAME` builds one"
        )
    return active


def planned_migration(request: MigrationRequest, snapshot: Snapshot) -> PlannedMigration:
    """Return the migration of a request, begun before or new, with its models.

    Raises:
        SettingsError: nothing would change, another migration is being built, or it was begun with other settings.
    """
    settings = brought_up(request.settings, quietly=True)
    active = read_migrations(snapshot.layout).active
    if active is not None:
        return with_models(_begun(active, request.values, settings), snapshot)
    if not request.values:
        _active(settings)
    changes = changes_to(settings, request.values)
    if not changes:
        said = ", ".join(f"{key} = {value}" for key, value in request.values)
        raise SettingsError(f"corpus {settings.corpus.root} has {said} already; there is nothing to migrate")
    target, stamp = changed(settings, changes), new_stamp()
    migration = Migration(stamp.run_id, changes, _made_with(settings, target), stamp.at)
    return with_models(PlannedMigration(migration, False, settings, target), snapshot)


def _begun(active: Migration, values: Sequence[tuple[str, Value]], settings: Settings) -> PlannedMigration:
    """Return the migration that is being built; check that it is the one that is asked for, and not another by now."""
    before, after = sides(settings, active)
    if values and {(each.key, each.after) for each in active.changes} != set(values):
        raise SettingsError(
            f"another migration of {settings.corpus.root} is being built ({active}); switch to it "
            "(`parquetry reindex --switch`) or abandon it (`parquetry reindex --abandon`) first"
        )
    if active.models != _made_with(before, after):
        raise SettingsError(
            f"the migration to {active} was begun with other settings of [embedding] or [chunking], or another "
            "model under the same name; put them back, or abandon it (`parquetry reindex --abandon`)"
        )
    return PlannedMigration(active, True, before, after)


def _made_with(settings: Settings, target: Settings) -> tuple[str, ...]:
    """Return what determines chunks and vectors besides the names of the embedders."""
    changed_names = sorted(set(target.embedders) - set(settings.embedders))
    ids = (id_of(name, target.embedding, target.hub) for name in changed_names)
    chunking = chunk.fingerprint(target.chunking, None)
    return (settings_hash({"template": target.embedding.template, "chunking": chunking}), *ids)


def with_models(planned: PlannedMigration, snapshot: Snapshot) -> PlannedMigration:
    """Return a migration with the models and targets of the namespaces that it concerns in a version of the corpus."""
    before, after = planned.before, planned.settings
    namespaces = [name for name in published_namespaces(snapshot) if concerns(before, after, name)]

    def chunking_before(namespace: str) -> str:
        in_tokens = before.chunking.unit == "tokens"
        name = before.embedder_of(namespace)
        return chunk.fingerprint(before.chunking, id_of(name, before.embedding, before.hub) if in_tokens else None)

    models = models_of(after, namespaces)
    targets = tuple(
        Target(name, model.id, model.fingerprints.embedding, chunking_before(name), model.fingerprints.chunking)
        for name, model in models.items()
    )
    return replace(planned, models=models, targets=targets)
