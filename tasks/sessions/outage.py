"""The use of services by the sources of a session run, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parquetry.errors import Verdict
from parquetry.planning.outage import Lost, Need
from parquetry.tasks.sessions.batch import LearnedSession
from parquetry.tasks.sessions.plan import SessionPlan


def session_needs(
    plan: SessionPlan, learned: Sequence[LearnedSession], failed: Mapping[str, Verdict]
) -> tuple[Need, ...]:
    """Return the needs of a run: each session to learn from, and each file that its store failed to return.

    Args:
        plan: plan of the run.
        learned: every session of the plan, successful or not.
        failed: verdicts of the failed sessions, including those that could not be compared.
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
        # A session that was learned from and failed nevertheless could not be compared.
        uncompared = verdict is not None and each.failed is None
        of_model = Lost("model", verdict.reason, verdict.detail) if verdict is not None and uncompared else each.lost
        if verdict is None or of_model is not None:
            needs.append(Need(file.namespace, file.source, of_model, "session"))
    return tuple(needs)
