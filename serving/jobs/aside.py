"""Jobs that wait for no run over whole sources: the plan of one, and the undoing of a decision about entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from parquetry.flows.pipelines.documents import plan_with_space
from parquetry.planning.diff import Change, SourcePlan
from parquetry.planning.report import count_documents
from parquetry.planning.rows import new_stamp
from parquetry.serving.jobs.context import JobContext
from parquetry.serving.jobs.indexing import update_index
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.runs import MOST_LISTED, refresh_request, reindex_job_request
from parquetry.serving.jobs.write_outcomes import JobOutcome
from parquetry.storage.entries.undoing import undo_decision
from parquetry.storage.lake.lake import Lake

if TYPE_CHECKING:
    from parquetry.tasks.documents.plan import RefreshPlan
    from parquetry.tasks.documents.space import DiskSpace

MOST_CHANGES = 200
"""changes of a source that a plan names"""
_ESTIMATED = ("chunks", "tokens", "cost_usd", "expected_usd", "unbounded")


def carry_out_aside(context: JobContext, job: Job) -> JobOutcome:
    """Carry out a plan, which writes and spends nothing, or an undo, which publishes one decision.

    Raises:
        ParquetryError: the plan cannot be made; nothing was undone.
    """
    if job.kind == "plan":
        planned, space = plan_with_space(_request(context, job))
        return JobOutcome(plan_json(planned, space))
    return _undo(context, job)


def _request(context: JobContext, job: Job) -> Any:
    return (reindex_job_request if job.payload.get("run") == "reindex" else refresh_request)(context, job)


def plan_json(plan: RefreshPlan, space: tuple[DiskSpace, ...]) -> dict[str, Any]:
    """Return a plan as the result of its job holds it: counts, cost, guards, and the first changes of each source.

    Args:
        plan: the plan.
        space: the space that it takes on each disk.
    """
    estimate = plan.estimate
    cost = {(each.namespace, each.source): each.as_json() for each in estimate.sources}
    return {
        "documents": count_documents(plan.sources).as_dict(),
        "estimate": {
            **{name: getattr(estimate, name) for name in _ESTIMATED},
            "likely": {name: getattr(estimate.likely, name) for name in estimate.likely.__slots__},
        },
        "sources": [_source(each, cost.get((each.namespace, each.source))) for each in plan.sources],
        "kept": [str(each) for each in plan.kept][:MOST_LISTED],
        "warnings": [*plan.empty, *plan.left_out, *plan.warnings][:MOST_LISTED],
        "space": [{"line": each.line, "refusal": each.refusal} for each in space],
    }


def _source(plan: SourcePlan, cost: Mapping[str, Any] | None) -> dict[str, Any]:
    changes = list(islice(_to_do(plan), MOST_CHANGES + 1))
    return {
        "source": plan.source,
        "namespace": plan.namespace,
        "documents": count_documents([plan]).as_dict(),
        "refused": plan.refused,
        "cost": cost,
        "changes": [_change(each) for each in changes[:MOST_CHANGES]],
        "more": len(changes) > MOST_CHANGES,
    }


def _to_do(plan: SourcePlan) -> Iterator[Change]:
    """Yield the changes that need work."""
    for changes in (plan.changes, plan.handed_over):
        yield from (change for change in changes if change.effort != "nothing")


def _change(change: Change) -> dict[str, str]:
    place = change.item.path if change.item else change.known.path if change.known else change.document_id
    return {"action": change.action, "path": place, "reason": change.reason}


def _undo(context: JobContext, job: Job) -> JobOutcome:
    settings = context.settings
    Lake(settings.corpus.root)
    lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
    done = undo_decision(lake, str(job.payload["decision_id"]), new_stamp())
    update_index(context)
    context.follow(done.version)
    decision = done.undoing.decision
    return JobOutcome(
        {
            "run_id": done.run_id,
            "version": done.version,
            "decision_id": decision.decision_id,
            "undoes": decision.undoes,
            "back": list(decision.adds),
            "gone": list(decision.retires),
            "affected": [each.decision_id for each in done.undoing.affected],
        }
    )
