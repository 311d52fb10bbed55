"""Migrations: from which settings to which, and how settings that say the former are followed. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from parquetry import ids
from parquetry.settings.sections import Settings, override, parse_settings

Value = str | int
State = Literal["building", "switched", "abandoned"]
CORPUS_EMBEDDER = "corpus.embedder"
_SIZE, _OVERLAP = "chunking.size", "chunking.overlap"
KEYS = (CORPUS_EMBEDDER, _SIZE, _OVERLAP)
"""settings that a migration may change, besides the embedders of namespaces"""


def embedder_key(namespace: str | None) -> str:
    """Return the key of the embedder of a namespace; of the corpus for None."""
    return CORPUS_EMBEDDER if namespace is None else f"namespace.{namespace}.embedder"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that a migration changes."""

    key: str
    """one of `KEYS`, or `namespace.<name>.embedder`"""
    before: Value
    after: Value

    def __str__(self) -> str:
        return f"{self.key} = {json.dumps(self.after, ensure_ascii=False)}"


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of embedder or chunk settings that is built beside the corpus and switched to in one publish."""

    key: str
    changes: tuple[SettingChange, ...]
    models: tuple[str, ...]
    """ids of the embedders after it, and what else determines vectors and chunks: a build that goes on with other
    settings would mix them"""
    at: datetime
    """time of its beginning, UTC"""
    state: State = "building"

    @property
    def mask(self) -> int:
        """Number that is combined with a revision (XOR) to give the revision of its candidate."""
        return ids.migration_mask(self.key)

    @property
    def embedders(self) -> tuple[str, ...]:
        """Names of embedders before and after it."""
        values = (value for each in self.changes for value in (each.before, each.after) if _names_embedder(each.key))
        return tuple(dict.fromkeys(str(value) for value in values))

    def __str__(self) -> str:
        return ", ".join(map(str, self.changes))


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations of a corpus, in order."""

    all: tuple[Migration, ...] = field(default=())

    @property
    def active(self) -> Migration | None:
        """The migration that is being built, if there is one."""
        return next((each for each in self.all if each.state == "building"), None)

    @property
    def switched(self) -> tuple[Migration, ...]:
        """The migrations that were switched to."""
        return tuple(each for each in self.all if each.state == "switched")

    @property
    def embedders(self) -> tuple[str, ...]:
        """Names of the embedders before and after all that were not abandoned, the latest first."""
        kept = (each for each in reversed(self.all) if each.state != "abandoned")
        return tuple(dict.fromkeys(name for each in kept for name in each.embedders))


def changes_to(settings: Settings, values: Iterable[tuple[str, Value]]) -> tuple[SettingChange, ...]:
    """Return the changes that lead from settings to the given values, without those that change nothing."""
    found = (SettingChange(key, value_of(settings, key), value) for key, value in values)
    return tuple(each for each in found if each.before != each.after)


def value_of(settings: Settings, key: str) -> Value:
    """Return the value of a setting that a migration may change."""
    if key == CORPUS_EMBEDDER:
        return settings.corpus.embedder
    if _names_embedder(key):
        return settings.embedder_of(_namespace(key))
    return settings.chunking.size if key == _SIZE else settings.chunking.overlap


def changed(settings: Settings, changes: Sequence[SettingChange]) -> Settings:
    """Return settings with the values after some changes, all validated again.

    Raises:
        WrongSettings: together with the other settings, a value is not valid.
    """
    sections: dict[str, dict[str, Any]] = {}
    own: dict[str, Value] = {}
    for each in changes:
        if _names_embedder(each.key) and each.key != CORPUS_EMBEDDER:
            own[_namespace(each.key)] = each.after
        else:
            section, _, name = each.key.partition(".")
            sections.setdefault(section, {})[name] = each.after
    made = override(settings, sections) if sections else settings
    if not own:
        return made
    values = made.model_dump(exclude_unset=True)
    others = [each for each in values.get("namespace", ()) if each["name"] not in own]
    values["namespace"] = [*others, *({"name": name, "embedder": value} for name, value in own.items())]
    return parse_settings(values, "migration")


def sides(settings: Settings, migration: Migration) -> tuple[Settings, Settings]:
    """Return the settings before and after a migration, whichever of both the given ones say."""
    back = tuple(SettingChange(each.key, each.after, each.before) for each in migration.changes)
    return changed(settings, back), changed(settings, migration.changes)


def concerns(before: Settings, after: Settings, namespace: str) -> bool:
    """Return True if a migration changes chunks or vectors of a namespace.

    Args:
        before: settings before it.
        after: settings after it.
        namespace: the namespace.
    """
    return before.chunking != after.chunking or before.embedder_of(namespace) != after.embedder_of(namespace)


def followed(settings: Settings, switched: Sequence[Migration]) -> tuple[Settings, tuple[SettingChange, ...]]:
    """Return settings brought to where migrations have led, and what of the given settings says something older.

    A value that no migration knows is the operator's own, and stays.

    Args:
        settings: as the settings file has them.
        switched: migrations that the corpus was switched to, in order.
    """
    histories: dict[str, list[Value]] = {}
    for migration in switched:
        for each in migration.changes:
            histories.setdefault(each.key, [each.before]).append(each.after)
    changes = tuple(
        change
        for key, values in histories.items()
        if value_of(settings, key) in values
        for change in changes_to(settings, [(key, values[-1])])
    )
    return (changed(settings, changes) if changes else settings), changes


def outdated_line(root: str, changes: Sequence[SettingChange]) -> str:
    """Return the line on settings that say something older than the corpus."""
    wanted = ", ".join(f"{change} instead of {json.dumps(change.before, ensure_ascii=False)}" for change in changes)
    return (
        f"corpus {root} was migrated, and the settings say what was before: set {wanted}. Until then runs and searches "
        "follow the corpus"
    )


def as_json(migration: Migration) -> dict[str, Any]:
    """Return a migration as a JSON object."""
    return {
        "state": migration.state,
        "at": migration.at.isoformat(),
        "settings": {each.key: {"before": each.before, "after": each.after} for each in migration.changes},
    }


def target_column(migration: Migration) -> str:
    """Return what the column `target` of the table `migrations` holds: JSON."""
    changes = [[each.key, each.before, each.after] for each in migration.changes]
    return json.dumps({"changes": changes, "models": migration.models}, ensure_ascii=False)


def parse_target(column: str) -> tuple[tuple[SettingChange, ...], tuple[str, ...]]:
    """Return the changes and models in a column `target`."""
    told = json.loads(column)
    return tuple(SettingChange(*each) for each in told["changes"]), tuple(told["models"])


def _names_embedder(key: str) -> bool:
    return key.endswith(".embedder")


def _namespace(key: str) -> str:
    return key.removeprefix("namespace.").removesuffix(".embedder")
