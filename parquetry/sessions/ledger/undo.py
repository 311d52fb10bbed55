"""What taking a decision back does: a decision of its own, which swaps what the other added and retired. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from parquetry.errors import SettingsError
from parquetry.planning.rows import Stamp
from parquetry.sessions.ledger.decisions import blank_decision
from parquetry.sessions.ledger.standing import in_force, standings
from parquetry.sessions.model import Decision


@dataclass(frozen=True, slots=True)
class Undoing:
    """A decision that takes another one back, and what it leads to."""

    decision: Decision
    """adds what comes back, and retires what leaves"""
    affected: tuple[Decision, ...]
    """later ones, still in force, that build on an entry which the other one had made live: oldest first"""


def undo(target: Decision, history: Sequence[Decision], stamp: Stamp) -> Undoing:
    """Take a decision back, as if it had never been made, while all others stand.

    Entries that it retired come back, unless another decision in force retires them; entries that it made live leave,
    unless another decision in force says them. What later decisions built on it stays and is named. An undoing can be
    undone like any other decision.

    Args:
        target: the decision.
        history: oldest first: `target`, and all decisions that bear on its entries and on what those were merged into.
        stamp: of the run that takes it back.

    Raises:
        SettingsError: it is taken back already, or it changed nothing that could be taken back.
    """
    before = in_force(history)
    if target.decision_id not in {decision.decision_id for decision in before}:
        by = next(each.decision_id for each in reversed(before) if each.undoes == target.decision_id)
        raise SettingsError(
            f"decision {target.decision_id} is undone already, by {by}; to have it back: parquetry undo {by}"
        )
    if target.entry_id is None and not (target.adds or target.retires or target.undoes):
        raise SettingsError(f"decision {target.decision_id} ({target.kind}) made no entry: there is nothing to undo")
    swap = replace(
        _by_operator(target.namespace, stamp, target.decision_id),
        user_id=target.user_id,
        text=target.text,
        entry_kind=target.entry_kind,
        access=target.access,
        undoes=target.decision_id,
    )
    was, now = standings(history), standings([*history, swap])
    lived = {entry for entry, each in was.items() if each.live}
    lives = {entry for entry, each in now.items() if each.live}
    adds, retires = tuple(sorted(lives - lived)), tuple(sorted(lived - lives))
    kept = target.entry_id if target.entry_id in lives else None
    return Undoing(
        replace(swap, adds=adds, retires=retires, entry_id=kept), tuple(_building_on(target, [*history, swap]))
    )


def rewritten(namespace: str, adds: tuple[str, ...], retires: tuple[str, ...], reason: str, stamp: Stamp) -> Decision:
    """The decision that puts on record what a rewrite of a whole namespace did to its entries.

    Args:
        namespace: of the entries.
        adds: entries that came back.
        retires: entries that left.
        reason: short code of the rewrite: `restore`, `remove`.
        stamp: of the rewrite.
    """
    return replace(_by_operator(namespace, stamp, namespace), adds=adds, retires=retires, reason=reason)


def _by_operator(namespace: str, stamp: Stamp, subject: str) -> Decision:
    return blank_decision(stamp, namespace, subject, 0, "undone", "operator")


def _building_on(target: Decision, history: Sequence[Decision]) -> list[Decision]:
    """The later decisions in force that merged what a decision had made live, or are linked to it."""
    made = set(target.adds)
    later = [decision.decision_id for decision in history].index(target.decision_id) + 1
    standing = {decision.decision_id for decision in in_force(history)}
    found = []
    for decision in history[later:]:
        if decision.decision_id not in standing or decision.undoes is not None:
            continue
        if made & {*decision.retires, *decision.links}:
            found.append(decision)
            if decision.kind == "merged":
                made |= {*decision.adds, *filter(None, [decision.entry_id])}
    return found
