"""The blank form of a decision."""

from __future__ import annotations

from parquetry import ids
from parquetry.planning.rows import RunStamp
from parquetry.sessions.model import Decision, DecisionKind, Judge, Spent


def blank_decision(
    stamp: RunStamp, namespace: str, subject: str, number: int, kind: DecisionKind, judge: Judge
) -> Decision:
    """Return a decision with only its kind and its maker, for the caller to complete.

    Args:
        stamp: of the run that writes it.
        namespace: of the entries.
        subject: id of a session or of an earlier decision, or the namespace itself.
        number: 0-based, among the run's decisions about that subject.
        kind: of verdict.
        judge: maker of the decision.
    """
    return Decision(
        decision_id=ids.decision_id(stamp.run_id, subject, number),
        namespace=namespace,
        kind=kind,
        judge=judge,
        at=stamp.at,
        run_id=stamp.run_id,
        session_id=None,
        session_uri=None,
        user_id=None,
        said_at=None,
        evidence=(),
        text="",
        entry_kind=None,
        access=None,
        confidence=None,
        entry_id=None,
        adds=(),
        retires=(),
        links=(),
        candidates=(),
        reasoning="",
        reason=None,
        undoes=None,
        spent=Spent(None, None),
    )
