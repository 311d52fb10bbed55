"""State of entries, folded from all decisions: which ones are live, and what supports them. Pure.

Decisions are immutable. One that was undone no longer counts, unless its undoing was undone in turn; every other
decision retires some entries, and adds or confirms others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from parquetry.sessions.model import Decision


@dataclass(frozen=True, slots=True)
class EntryState:
    """State of one entry after all decisions."""

    live: bool
    sessions: frozenset[str]
    """ids of the sessions that say it, or say something that was merged into it"""
    last_said: datetime | None
    """UTC, the latest time at which one of them says it; None if unknown"""
    contradicts: tuple[str, ...]
    """ids of entries that say the opposite, sorted"""


UNKNOWN = EntryState(False, frozenset(), None, ())
"""state of an entry without decisions"""


@dataclass(slots=True)
class _Sum:
    live: bool = False
    sessions: set[str] = field(default_factory=set)
    last_said: datetime | None = None
    contradicts: set[str] = field(default_factory=set)

    def said(self, moment: datetime | None) -> None:
        if moment is not None and (self.last_said is None or moment > self.last_said):
            self.last_said = moment


def in_force(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the decisions that are not undone, in their order.

    Args:
        decisions: oldest first, with every decision that undoes one of them.
    """
    undone: set[str] = set()
    kept = []
    for decision in reversed(decisions):
        if decision.decision_id not in undone:
            kept.append(decision)
            if decision.undoes is not None:
                undone.add(decision.undoes)
    return kept[::-1]


def entry_states(decisions: Sequence[Decision]) -> dict[str, EntryState]:
    """Fold decisions into the state of every entry that they name.

    Args:
        decisions: oldest first: all that name one of these entries, or undo one that does. For an entry replaced by a
            merge, sessions and dates are complete only if the decisions that name it are among them.

    Returns:
        States by entry id.
    """
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for decision in in_force(decisions):
        if decision.undoes is None:
            _add(decision, sums)
    return {
        entry: EntryState(each.live, frozenset(each.sessions), each.last_said, tuple(sorted(each.contradicts)))
        for entry, each in sums.items()
    }


def _add(decision: Decision, sums: dict[str, _Sum]) -> None:
    replaced = [sums[entry] for entry in decision.retires]
    for each in replaced:
        each.live = False
    said = set(decision.adds) | ({decision.entry_id} if decision.entry_id else set())
    for entry in said:
        one = sums[entry]
        one.live = True
        if decision.session_id:
            one.sessions.add(decision.session_id)
        one.said(decision.said_at)
        if decision.kind == "merged":
            for each in replaced:
                one.sessions |= each.sessions
                one.contradicts |= each.contradicts
                one.said(each.last_said)
            # A contradiction of a part contradicts the whole, and nothing contradicts itself.
            one.contradicts -= {entry, *decision.retires}
            for other in one.contradicts:
                sums[other].contradicts -= set(decision.retires)
                sums[other].contradicts.add(entry)
        if decision.kind == "contradicts":
            for other in decision.links:
                one.contradicts.add(other)
                sums[other].contradicts.add(entry)
