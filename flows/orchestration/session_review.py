"""Human review of merges during a flow run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prefect import runtime
from prefect.flow_runs import pause_flow_run, suspend_flow_run
from prefect.input import RunInput
from pydantic import Field

from parquetry.ids import settings_hash
from parquetry.plural import counted
from parquetry.sessions.merge.effects import MergeProposal

POLL_SECONDS = 5
"""seconds between two checks for an answer"""
LONGEST_WAIT = 24 * 60 * 60
"""seconds; a run without an answer then fails, with nothing published and every paid LLM answer kept"""


class MergeReview(RunInput):
    """Keys of the rejected merges; the entries they would have merged stay separate."""

    rejected: list[str] = Field([], title="Rejected", description="Keys of the merges that must not be made.")


def wait_for_review(proposals: Sequence[MergeProposal]) -> Collection[str]:
    """Show merges in the flow run's UI, and wait for the answer.

    A deployment's run is suspended: its process ends, and it restarts when the answer is there, without paid calls,
    because LLM answers are cached. Any other run waits in its process.

    Returns:
        Keys of the rejected merges.
    """
    form = MergeReview.with_initial_data(description=as_markdown(proposals), rejected=[])
    # The same merges are asked about only once, however often the run restarts.
    key = f"merges-{settings_hash({'keys': sorted(proposal.key for proposal in proposals)})}"
    if runtime.deployment.id:
        answer = suspend_flow_run(wait_for_input=form, key=key, timeout=LONGEST_WAIT)
    else:
        answer = pause_flow_run(wait_for_input=form, key=key, timeout=LONGEST_WAIT, poll_interval=POLL_SECONDS)
    return answer.rejected


def as_markdown(proposals: Sequence[MergeProposal]) -> str:
    """Format merges as Markdown."""
    parts = [
        f"# {counted(len(proposals), 'merge waits', 'merges wait')} for an answer",
        "Resume the run with the keys of those to reject.",
    ]
    for proposal in proposals:
        parts += [
            f"## `{proposal.key}`",
            f"From {proposal.session_uri}",
            f"- learned: {_line(proposal.learned)}",
            *(f"- replaces: {_line(text)}" for text in proposal.replaced),
            f"- becomes: **{_line(proposal.merged)}**",
            f"- because: {_line(proposal.reasoning)}",
        ]
    return "\n\n".join(parts)


def _line(text: str) -> str:
    return " ".join(text.split())
