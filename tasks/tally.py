"""What a batch counts while it works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class Tally:
    """Bytes, seconds and what was worked around."""

    bytes_read: int = 0
    description_tokens: int = 0
    """read and written by the language model that described images"""
    description_cost_usd: float = 0.0
    warnings: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time inside to a stage's seconds."""
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started
