"""The history of a corpus: its publishes and their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake import DeltaTable

from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake.staging import COMMIT, number_of


@dataclass(frozen=True, slots=True)
class Publish:
    """A publish in the history."""

    version: int
    at: datetime
    """UTC"""
    operation: str
    run_id: str | None
    documents: int
    """number of rows written"""


def publishes(layout: Layout, table: DeltaTable, limit: int | None = None) -> list[Publish]:
    """Return the commits of the table `documents`, newest first; a vacuum deletes those of versions that are not kept.

    Args:
        layout: layout of the corpus.
        table: the opened table.
        limit: maximum number, newest first; None for all.
    """
    names = [entry.name for entry in filesystem_at(layout.root).entries(layout.log("documents"))]
    numbers = sorted((number_of(name) for name in names if COMMIT.fullmatch(name)), reverse=True)
    # delta-rs numbers the commits as if none was missing.
    there = (number for number in numbers if number <= table.version())
    return [
        Publish(
            version=version,
            at=datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
            operation="create" if entry["operation"].startswith("CREATE") else "publish",
            run_id=entry.get("run_id"),
            documents=int(entry.get("rows") or 0),
        )
        for version, entry in zip(there, table.history(limit), strict=False)
    ]
