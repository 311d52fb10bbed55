"""What a batch counts and notes while it works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from parquetry.model import Note


@dataclass
class Tally:
    """Bytes, seconds and notes on documents."""

    bytes_read: int = 0
    description_tokens: int = 0
    """read and written by the language model that described images"""
    description_cost_usd: float | None = 0.0
    """None if the price is not known"""
    notes: list[Note] = field(default_factory=list)
    """what was worked around"""
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time inside to a stage's seconds."""
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started
