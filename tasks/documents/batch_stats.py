"""Statistics and notes of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from parquetry.model import Note
from parquetry.planning.costs import Cost
from parquetry.telemetry.tracing import span


@dataclass
class BatchStats:
    """Bytes, seconds and notes of a batch."""

    bytes_read: int = 0
    descriptions: list[Cost] = field(default_factory=list)
    """costs of image descriptions"""
    notes: list[Note] = field(default_factory=list)
    """problems that were worked around"""
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the duration of the block to a stage's seconds."""
        started = perf_counter()
        try:
            with span(f"parquetry.batch.{name}"):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started
