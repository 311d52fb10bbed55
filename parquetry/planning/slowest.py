"""The slowest documents of a run, as its report and the table `runs` have them."""

from __future__ import annotations

import heapq
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from parquetry.masking import masked

MOST_SLOWEST = 10
"""documents that a run names as its slowest"""
_DIGITS = 3
"""digits after the point of seconds"""


@dataclass(frozen=True, slots=True)
class SlowItem:
    """A document or a session with the time that it took."""

    namespace: str
    source: str
    document_id: str
    uri: str
    stage: str
    """stage that took longest: fetch, extract or describe, for a session distill"""
    seconds: float
    """of all stages together, waits included"""

    def as_json(self) -> dict[str, Any]:
        """Return the object in reports."""
        return {**asdict(self), "seconds": round(self.seconds, _DIGITS)}


class SlowestItems:
    """The slowest items of a run so far, in bounded memory. Thread-safe.

    Args:
        most: number of items that are kept.
    """

    def __init__(self, most: int = MOST_SLOWEST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], SlowItem] = {}
        """by namespace and id: an item that is tried again counts once"""

    def add(self, item: SlowItem) -> None:
        """Count an item; secrets in its address are masked if it is kept."""
        key = item.namespace, item.document_id
        with self._lock:
            known = self._kept.get(key)
            if known is None and len(self._kept) >= self._most:
                fastest = min(self._kept, key=lambda each: self._kept[each].seconds)
                if self._kept[fastest].seconds >= item.seconds:
                    return
                del self._kept[fastest]
            if known is None or known.seconds < item.seconds:
                self._kept[key] = replace(item, uri=masked(item.uri))

    @property
    def all(self) -> tuple[SlowItem, ...]:
        """The kept items, slowest first."""
        with self._lock:
            return tuple(heapq.nlargest(self._most, self._kept.values(), key=lambda item: item.seconds))


def slowest_column(items: Iterable[SlowItem]) -> str:
    """Return items as the column `slowest` of `runs` holds them: without addresses, which belong to the documents.

    A document that is erased leaves no name behind.
    """
    rows = ({key: value for key, value in item.as_json().items() if key != "uri"} for item in items)
    return json.dumps(list(rows), ensure_ascii=False)


def stages_column(seconds: Mapping[str, float]) -> str:
    """Return seconds by stage as the column `seconds_by_stage` of `runs` holds them: a JSON object."""
    return json.dumps(rounded_stages(seconds))


def rounded_stages(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return seconds by stage, rounded to milliseconds."""
    return {stage: round(taken, _DIGITS) for stage, taken in seconds.items()}
