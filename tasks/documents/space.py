"""Estimate the disk space that a refresh needs, before it begins.

There are two figures: a likely one, for people, and a minimum, which alone stops a run. Source of the numbers:
measured, docs/decisions/0023-a-full-disk.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from parquetry.chunking.fingerprint import CHARACTERS_PER_TOKEN
from parquetry.errors import RefusedError
from parquetry.extract.media_types import UTF8_PER_CHARACTER
from parquetry.plural import size_of
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import layout_of
from parquetry.storage.index.files import chunk_bytes
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.space import existing, index_bytes, index_bytes_at_least
from parquetry.storage.lake.lake import Snapshot
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.plan import RefreshPlan

RUN_BYTES = 60_000
"""bytes of the commits and records of any run"""
CHUNK_BYTES = 50
"""bytes of a chunk in its shard, besides vector and text"""
DOCUMENT_BYTES = 300
"""bytes of a document in its shards, besides vector and text"""
SHARE_IN_CHUNKS = 0.42
SHARE_IN_TEXTS = 0.46
"""bytes of a shard for each character of text, compressed"""
AT_LEAST = 0.5
"""minimum share of the likely bytes, where sizes are known: documents may fail or hold less text"""
LEAST_FILES = 8
"""files that any publishing run creates"""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The space that a run needs on one disk."""

    place: str
    """the corpus, or the folder of its search index if that is on another disk"""
    likely: int
    """bytes at the peak"""
    at_least: int
    """bytes; a run with less free space does not begin"""
    free: int
    """bytes"""
    files_free: int | None
    """number of files that can still be created; None where the disk sets no limit"""

    def as_json(self) -> dict[str, str | int | None]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def line(self) -> str:
        """Describe the space in one line."""
        return f"about {size_of(self.likely)} on the disk of {self.place}, {size_of(self.free)} free"

    @property
    def refusal(self) -> str | None:
        """Return the reason why a run does not begin; None if it may fit."""
        if self.free < self.at_least:
            return (
                f"the disk of {self.place} has {size_of(self.free)} free, and this refresh takes about "
                f"{size_of(self.likely)}, at least {size_of(self.at_least)}; free some, nothing was done"
            )
        if self.files_free is not None and self.files_free < LEAST_FILES:
            return (
                f"the disk of {self.place} can have {self.files_free} more files (inodes), and this refresh makes at "
                f"least {LEAST_FILES}; delete some, nothing was done"
            )
        return None


@dataclass(slots=True)
class _Work:
    """The documents of a plan that need work."""

    documents: int = 0
    namespaces: set[str] = field(default_factory=set)
    plain_characters: float = 0.0
    """characters of new documents whose size implies their amount of text"""


def _work_of(plan: RefreshPlan) -> _Work:
    work = _Work()
    for source, tally in plan.tallies():
        if tally.to_do:
            work.documents += tally.to_do
            work.namespaces.add(source.namespace)
            work.plain_characters += tally.plain_bytes / UTF8_PER_CHARACTER
    return work


def space_of(
    plan: RefreshPlan, settings: Settings, snapshot: Snapshot | None, models: Mapping[str, Model]
) -> tuple[DiskSpace, ...]:
    """Return the space a refresh needs on each local disk that it writes to; empty if there is nothing to do.

    Args:
        plan: plan of the refresh.
        settings: settings of the corpus.
        snapshot: snapshot of the plan; None if there is no corpus yet.
        models: namespace -> model of its documents.
    """
    work = _work_of(plan)
    if not work.documents:
        return ()
    layout = layout_of(settings.corpus.root)
    folder = IndexFolder(layout, settings.search)
    made = not layout.is_local or settings.search.index_folder is not None or Path(layout.root).exists()
    index = str(folder.path) if made else layout.index
    stored = chunk_bytes(snapshot) if snapshot is not None and any(snapshot.files["chunks"]) else 0
    vector = max(_vector_bytes(models[namespace].id) for namespace in work.namespaces)
    unit = CHARACTERS_PER_TOKEN if settings.chunking.unit == "tokens" else 1.0
    step = max(1, settings.chunking.size - settings.chunking.overlap) * unit

    chunks = plan.estimate.likely.chunks
    text = chunks * step
    shards = chunks * (vector + CHUNK_BYTES) + text * SHARE_IN_CHUNKS
    texts = work.documents * (vector + DOCUMENT_BYTES) + text * SHARE_IN_TEXTS
    likely = {
        layout.root: int(RUN_BYTES + shards + texts),
        index: index_bytes(folder, int(stored + shards), int(shards)),
    }
    # Text may compress well, but vectors do not.
    surely = work.plain_characters / (settings.chunking.size * unit) * vector
    at_least = {
        layout.root: int(AT_LEAST * surely),
        index: int(AT_LEAST * index_bytes_at_least(folder, int(surely))),
    }
    if not layout.is_local:
        del likely[layout.root], at_least[layout.root]
    return _by_disk(likely, at_least)


def check_space(spaces: Iterable[DiskSpace]) -> None:
    """Stop before a refresh that does not fit on the disk.

    Raises:
        RefusedError: gives the space needed and the space free.
    """
    for space in spaces:
        if space.refusal is not None:
            raise RefusedError(space.refusal)


def _by_disk(likely: Mapping[str, int], at_least: Mapping[str, int]) -> tuple[DiskSpace, ...]:
    found: dict[int, DiskSpace] = {}
    for place, count in likely.items():
        there = existing(place)
        disk, state = there.stat().st_dev, os.statvfs(there)
        free = state.f_bavail * state.f_frsize
        # Some file systems report no number of files.
        files = state.f_favail if state.f_files else None
        before = found.get(disk, DiskSpace(place, 0, 0, free, files))
        found[disk] = DiskSpace(before.place, before.likely + count, before.at_least + at_least[place], free, files)
    return tuple(found.values())


def _vector_bytes(model: str) -> int:
    """Return the bytes of one vector of a model, from the model's id."""
    dimension = re.search(r"@(\d+)$", model)
    return 4 * int(dimension[1]) if dimension else 0
