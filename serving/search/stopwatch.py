"""Timing of the stages of a search, in seconds."""

from __future__ import annotations

from time import perf_counter


class Stopwatch:
    """Stopwatch for consecutive stages, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def stage(self, name: str) -> None:
        """Book the time since the last stage under this name."""
        now = perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
