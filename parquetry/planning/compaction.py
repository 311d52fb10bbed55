"""Decide which shards of a table are written together, and which versions are kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from parquetry.settings.retention import RetentionSettings

TARGET_BYTES = 32 << 20
"""bytes of the shards that are written together; all of them are in memory at once"""
SMALL_BYTES = TARGET_BYTES // 2
"""bytes below which a shard counts as small"""
MANY_FILES = 50
"""number of small shards of a table from which on upkeep is due"""
DROPPED_SHARE = 0.2
"""share of rows that are needed no more from which on a shard is written again without them"""


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard of a table, as far as a compaction is concerned."""

    name: str
    size: int
    """bytes"""
    rows: int
    dropped: int
    """number of its rows that no kept version needs"""
    entries: bool = False
    """True for texts and chunks of entries, which stay apart"""

    @property
    def is_small(self) -> bool:
        return self.size < SMALL_BYTES

    @property
    def is_worn(self) -> bool:
        return self.dropped > 0 and self.dropped >= DROPPED_SHARE * self.rows


Group = tuple[ShardState, ...]
"""shards that are written as one"""


def groups(shards: Sequence[ShardState], *, least: int = 2, together: bool = False) -> list[Group]:
    """Return the shards of a table to write together; empty if nothing would be gained.

    Args:
        shards: all shards of the table, in the order in which they were written.
        least: number of small shards from which on they are written together.
        together: True if rows are dropped from all shards or from none: a row that says that a document was removed
            must not go before the rows of the document.
    """
    scattered = sum(shard.is_small for shard in shards) >= least
    if together:
        dropped = sum(shard.dropped for shard in shards)
        worn = dropped > 0 and dropped >= DROPPED_SHARE * sum(shard.rows for shard in shards)
        chosen = [shard for shard in shards if shard.is_small or shard.dropped] if worn or scattered else []
    else:
        chosen = [shard for shard in shards if shard.is_worn or (shard.is_small and scattered)]
    packed = [group for entries in (False, True) for group in _packed([s for s in chosen if s.entries == entries])]
    return [group for group in packed if len(group) > 1 or group[0].dropped]


def _packed(shards: Sequence[ShardState]) -> list[Group]:
    found: list[list[ShardState]] = []
    size = TARGET_BYTES
    for shard in shards:
        if size + shard.size > TARGET_BYTES:
            found.append([])
            size = 0
        found[-1].append(shard)
        size += shard.size
    return [tuple(group) for group in found]


def cutoff_of(settings: RetentionSettings, now: datetime) -> datetime:
    """Return the time from which on versions are kept."""
    return now - timedelta(days=settings.days)


def horizon_of(publishes: Sequence[tuple[int, datetime]], settings: RetentionSettings, now: datetime) -> int:
    """Return the lowest version from which on all are kept.

    Args:
        publishes: versions and their times, newest first.
        settings: the time and the number for which versions are kept.
        now: present time.
    """
    cutoff = cutoff_of(settings, now)
    lowest = publishes[-1][0]
    # The version that was the newest at the cutoff is kept, too.
    by_time = next((version for version, at in publishes if at <= cutoff), lowest)
    return max(lowest, min(by_time, publishes[0][0] - settings.versions + 1))
