"""Undoing a decision: a new decision that swaps what the earlier one added and retired. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from parquetry.errors import SettingsError
from parquetry.planning.rows import RunStamp
from parquetry.sessions.ledger.decisions import blank_decision
from parquetry.sessions.ledger.entry_state import entry_states, in_force
from parquetry.sessions.model import Decision


@dataclass(frozen=True, slots=True)
class Undoing:
    """A decision that undoes another, and its consequences."""

    decision: Decision
    """adds the entries that return, and retires those that leave"""
    affected: tuple[Decision, ...]
    """later decisions in force, oldest first, that build on an entry which the undone decision made live"""


def undo(target: Decision, history: Sequence[Decision], stamp: RunStamp) -> Undoing:
    """Undo a decision as if it had never been made, while all others remain in force.

    Entries that it retired return, unless another decision in force retires them; entries that it made live leave,
    unless another decision in force confirms them. Later decisions built on it remain and are reported. An undoing can
    be undone like any other decision.

    Args:
        target: the decision.
        history: oldest first: `target`, and all decisions about its entries and the entries that those were merged
            into.
        stamp: of the run that undoes it.

    Raises:
        SettingsError: it is already undone, or it changed nothing that could be undone.
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
    was, now = entry_states(history), entry_states([*history, swap])
    lived = {entry for entry, each in was.items() if each.live}
    lives = {entry for entry, each in now.items() if each.live}
    adds, retires = tuple(sorted(lives - lived)), tuple(sorted(lived - lives))
    kept = target.entry_id if target.entry_id in lives else None
    return Undoing(
        replace(swap, adds=adds, retires=retires, entry_id=kept), tuple(_building_on(target, [*history, swap]))
    )


def rewritten(
    namespace: str, adds: tuple[str, ...], retires: tuple[str, ...], reason: str, stamp: RunStamp
) -> Decision:
    """Return the decision that records how a rewrite of a whole namespace changed its entries.

    Args:
        namespace: of the entries.
        adds: entries that returned.
        retires: entries that left.
        reason: short code of the rewrite: `restore`, `remove`.
        stamp: of the rewrite.
    """
    return replace(_by_operator(namespace, stamp, namespace), adds=adds, retires=retires, reason=reason)


def _by_operator(namespace: str, stamp: RunStamp, subject: str) -> Decision:
    return blank_decision(stamp, namespace, subject, 0, "undone", "operator")


def _building_on(target: Decision, history: Sequence[Decision]) -> list[Decision]:
    """Return the later decisions in force that merged entries made live by a decision, or link to them."""
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
