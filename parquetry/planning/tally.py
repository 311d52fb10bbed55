"""Counts of planned changes, made while they are planned: many are in a file, and to read them again takes time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parquetry.extract.media_types import keeps_its_size
from parquetry.model import Status
from parquetry.planning.views import View

if TYPE_CHECKING:
    from parquetry.planning.diff import Change


@dataclass(slots=True)
class Tally:
    """Counts of changes; `counted` and `add` fill it."""

    to_do: int = 0
    """changes that need work"""
    rows: int = 0
    """changes that need only a row"""
    not_indexed: int = 0
    """listed documents whose current row says that they failed or were skipped"""
    plain_bytes: int = 0
    """bytes of new documents whose size implies their amount of text"""
    outcomes: Counter[str] = field(default_factory=Counter)
    """`outcome_of` of the listed documents, and `removed`"""

    def add(self, change: Change) -> None:
        self.to_do += change.effort != "nothing"
        self.rows += change.effort == "row"
        if change.action == "removed":
            self.outcomes["removed"] += 1
            return
        self.outcomes[outcome_of(change, None, held=False)] += 1
        self.not_indexed += change.known is not None and change.known.status != "indexed"
        if change.action == "added" and change.item is not None and keeps_its_size(change.item.path):
            self.plain_bytes += change.item.size

    def counted(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield changes, counted."""
        for change in changes:
            self.add(change)
            yield change


class TalliedChanges(View["Change"]):
    """Changes in a file, with their tally.

    Args:
        changes: the changes.
        tally: tally of all of them.
    """

    def __init__(self, changes: Sequence[Change], tally: Tally) -> None:
        self._changes = changes
        self.tally = tally

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    def _at(self, place: int) -> Change:
        return self._changes[place]


def tally_of(changes: Sequence[Change]) -> Tally:
    """Return the tally of changes: theirs if they have one, or else counted now."""
    if isinstance(changes, TalliedChanges):
        return changes.tally
    tally = Tally()
    for change in changes:
        tally.add(change)
    return tally


def outcome_of(change: Change, status: Status | None, *, held: bool) -> str:
    """Return the field of `DocumentCounts` in which a listed document counts.

    Args:
        change: planned change, no removal.
        status: status that the run published for the document; None if it published none.
        held: True if nothing was done with the document.
    """
    latest = status or (change.known.status if change.known is not None else "indexed")
    if latest != "indexed" and (status is not None or held or change.effort != "extract"):
        return latest
    return "unchanged" if held else change.action
