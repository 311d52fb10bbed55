"""What the sources of a run over sessions needed of services, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parquetry.errors import Verdict
from parquetry.planning.outage import Lost, Need
from parquetry.tasks.sessions.batch import LearnedSession
from parquetry.tasks.sessions.plan import SessionPlan


def session_needs(
    plan: SessionPlan, learned: Sequence[LearnedSession], failed: Mapping[str, Verdict]
) -> tuple[Need, ...]:
    """What was needed: each session that was to be learned from, and each file that its store did not give.

    Args:
        plan: of the run.
        learned: every session of the plan, good or not.
        failed: verdicts of the sessions that failed, of those that could not be compared among them.
    """
    needs = []
    for read in plan.files:
        if read.refused is not None and read.refused[1].fate == "retry":
            refusal = read.refused[1]
            lost = Lost("store", refusal.reason, refusal.detail)
            needs.append(Need(read.file.namespace, read.file.source, lost, "file"))
    for each in learned:
        file = each.found.file
        verdict = failed.get(each.found.ref.session_id)
        # What was learned and failed all the same could not be compared.
        uncompared = verdict is not None and each.failed is None
        of_model = Lost("model", verdict.reason, verdict.detail) if verdict is not None and uncompared else each.lost
        if verdict is None or of_model is not None:
            needs.append(Need(file.namespace, file.source, of_model, "session"))
    return tuple(needs)
