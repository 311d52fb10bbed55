"""Seconds of the stages of a search."""

from __future__ import annotations

from time import perf_counter


class Stopwatch:
    """Seconds of what was done one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def stage(self, name: str) -> None:
        """What was done since the last stage has this name."""
        now = perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
