"""Bars of charts: lengths in proportion, which a table beside them says in figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_PARTS = ("fetch", "extract", "describe", "embed", "store", "distill", "compare")
_NAMES: Mapping[str, str] = {
    "plan": "Listing and planning",
    "process": "Processing",
    "publish": "Publishing",
    "index": "Search index",
    "record": "Recording",
    "fetch": "Fetching",
    "extract": "Reading",
    "describe": "Describing pictures",
    "chunk": "Cutting into chunks",
    "embed": "Embedding",
    "store": "Writing",
    "distill": "Learning",
    "compare": "Comparing",
}
WIDTH = 200
"""length of the longest bar, in units of the drawing"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar."""

    label: str
    seconds: float
    length: float
    """0 to WIDTH"""
    inner: bool
    """True for a part of the processing, summed over documents that are processed side by side"""


def stage_bars(seconds: Mapping[str, float]) -> list[Bar]:
    """Return the stages of a run: those by the clock, then the parts of processing.

    Args:
        seconds: stage -> seconds.
    """
    longest = max(seconds.values(), default=0.0)
    ordered = sorted(seconds.items(), key=lambda each: each[0] in _PARTS)
    return [
        Bar(_NAMES.get(stage, stage.capitalize()), taken, _length(taken, longest), stage in _PARTS)
        for stage, taken in ordered
    ]


def _length(value: float, longest: float) -> float:
    return round(WIDTH * value / longest, 1) if longest > 0 else 0.0
