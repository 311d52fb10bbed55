"""A person's answer about merges, waited for by a flow run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prefect import runtime
from prefect.flow_runs import pause_flow_run, suspend_flow_run
from prefect.input import RunInput
from pydantic import Field

from parquetry.ids import settings_hash
from parquetry.plural import counted
from parquetry.sessions.merge.effects import Proposal

POLL_SECONDS = 5
"""between two looks whether somebody has answered"""
LONGEST_WAIT = 24 * 60 * 60
"""seconds; a run that nobody answers fails after that, with nothing published and every paid answer kept"""


class MergeReview(RunInput):
    """Which merges are rejected; what they would have joined is kept side by side."""

    rejected: list[str] = Field([], title="Rejected", description="Keys of the merges that must not be made.")


def wait_for_review(proposals: Sequence[Proposal]) -> Collection[str]:
    """Show merges to whoever watches the flow run, and wait for the answer.

    A run of a deployment is suspended: its process ends, and it begins again when the answer is there, without a paid
    call, because answers are kept. Any other run waits in its process.

    Returns:
        Keys of the merges that are rejected.
    """
    form = MergeReview.with_initial_data(description=as_markdown(proposals), rejected=[])
    # The same merges are asked about once, however often the run begins again.
    key = f"merges-{settings_hash({'keys': sorted(proposal.key for proposal in proposals)})}"
    if runtime.deployment.id:
        answer = suspend_flow_run(wait_for_input=form, key=key, timeout=LONGEST_WAIT)
    else:
        answer = pause_flow_run(wait_for_input=form, key=key, timeout=LONGEST_WAIT, poll_interval=POLL_SECONDS)
    return answer.rejected


def as_markdown(proposals: Sequence[Proposal]) -> str:
    """Merges as a person reads them."""
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
