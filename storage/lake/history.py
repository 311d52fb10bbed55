"""The history of a corpus: its publishes and their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake import DeltaTable


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


def publishes(table: DeltaTable, limit: int | None = None) -> list[Publish]:
    """Return the commits of the table `documents`, newest first.

    Args:
        table: the opened table.
        limit: maximum number, newest first; None for all.
    """
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
