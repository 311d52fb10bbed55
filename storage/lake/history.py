"""What was published to a corpus, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake import DeltaTable


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


def publishes(table: DeltaTable, limit: int | None = None) -> list[Publish]:
    """The commits of the table `documents`, newest first.

    Args:
        table: opened.
        limit: newest ones; None for all.
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
