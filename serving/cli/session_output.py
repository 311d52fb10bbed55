"""Terminal output of a run over chat sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry.planning.report import published_line
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.output import confirmed
from parquetry.serving.cli.run_output import SHOWN_FAILURES, priced, print_batches
from parquetry.sessions.report import SessionsReport, reasons

if TYPE_CHECKING:
    from parquetry.sessions.merge.effects import MergeProposal
    from parquetry.sessions.model import Decision
    from parquetry.tasks.sessions.plan import SessionPlan

SHOWN_ENTRIES = 20
_MARKS = {"new": "+", "merged": "~", "contradicts": "!"}


def print_sessions_report(report: SessionsReport, root: str, *, verbose: bool) -> None:
    """Print the report of a run."""
    counts = report.sessions
    parts = [f"{value} {name}" for name, value in counts.items() if value and name != "scanned"]
    seen = counted(counts["scanned"], "session")
    tell(f"{seen} in {report.seconds:.1f} s: {', '.join(parts) or 'nothing to do'}.")
    made = [f"{value} {name}" for name, value in report.entries.items() if value]
    if made:
        tell(f"Entries: {', '.join(made)}.")
    if report.calls or report.cached:
        cost = "" if report.cost_usd == 0 else f", {priced(report.cost_usd)}"
        asked = counted(report.calls, "call")
        tell(f"{asked} ({counted(report.tokens, 'token')}{cost}), {counted(report.cached, 'answer')} looked up.")
    _print_decisions(report, verbose=verbose)
    tell(published_line(root, report))
    for failure in report.failures[:SHOWN_FAILURES]:
        tell(f"  {failure.status} {failure.uri}: {failure.stage}/{failure.reason}: {failure.detail}")
    if len(report.failures) > SHOWN_FAILURES:
        tell(f"  ... and {len(report.failures) - SHOWN_FAILURES} more: parquetry sql 'FROM failures'")
    for warning in report.warnings:
        tell(f"  note {warning}")
    print_batches(report)
    for outage in report.outages:
        tell(f"Failed: {outage}.")
    for refusal in report.refused:
        tell(f"Refused: {refusal}.")


def _print_decisions(report: SessionsReport, *, verbose: bool) -> None:
    told = [decision for decision in report.decisions if decision.kind in _MARKS]
    shown = told if verbose else told[:SHOWN_ENTRIES]
    for decision in shown:
        tell(f"  {_MARKS[decision.kind]} [{_scope(decision)}] {_one_line(decision.text)} ({decision.decision_id})")
    if len(shown) < len(told):
        tell(f"  ... and {len(told) - len(shown)} more; -v shows all, `parquetry decisions` lists them")
    for reason, count in reasons(report.decisions).items():
        tell(f"  {count} x {reason}")
    if report.entries["quarantined"]:
        tell("  what is quarantined is asked about again with: parquetry sessions refresh --retry-quarantined")


def _scope(decision: Decision) -> str:
    access = decision.access
    if access is None:
        return "nobody"
    return access.user_id if access.visibility == "individual" and access.user_id else access.org_id or "public"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:157] + "..."


def print_session_plan(plan: SessionPlan, *, verbose: bool) -> None:
    """Print the plan of a run."""
    counts, estimate = plan.counts, plan.estimate
    parts = [f"{value} {name}" for name, value in counts.items() if value and name != "scanned"]
    tell(f"{counted(counts['scanned'], 'session')}: {', '.join(parts) or 'nothing to do'}.")
    shown = plan.sessions if verbose else plan.sessions[:SHOWN_ENTRIES]
    for found in shown:
        tell(f"  {found.change} {found.ref.uri}")
    if len(shown) < len(plan.sessions):
        tell(f"  ... and {len(plan.sessions) - len(shown)} more; -v shows all")
    for failure in plan.failures[:SHOWN_FAILURES]:
        tell(f"  {failure.status} {failure.uri}: {failure.stage}/{failure.reason}: {failure.detail}")
    for warning in plan.warnings:
        tell(f"  note {warning}")
    if not estimate.windows and not estimate.kept:
        tell("Nothing to ask a language model.")
        return
    kept = f"; {counted(estimate.kept, 'answer is', 'answers are')} kept already" if estimate.kept else ""
    batch = f" (${estimate.cost_usd_batch:.4f} through the batch API)" if estimate.cost_usd_batch else ""
    cost = f"${estimate.cost_usd:.4f}{batch}" if estimate.priced else "no price is set in [llm]"
    seen = counted(estimate.windows, "window")
    tell(f"{seen} to read{kept}: about {counted(estimate.tokens, 'token')}, comparisons assumed; {cost}.")
    if estimate.price is not None and estimate.cost_usd:
        tell(f"Price of {estimate.price.model}: {estimate.price}.")
    if estimate.is_batched:
        tell("Questions go through the batch API (batch_api.sessions), comparisons do not.")


def ask_about(proposal: MergeProposal, number: int, count: int) -> bool:
    """Show a merge at the terminal and ask for approval."""
    tell()
    tell(f"Merge {number} of {count}, from {proposal.session_uri}")
    tell(f"  learned:  {proposal.learned}")
    for text in proposal.replaced:
        tell(f"  replaces: {text}")
    tell(f"  becomes:  {proposal.merged}")
    tell(f"  because:  {proposal.reasoning}")
    return confirmed("Merge? (no keeps both)", default=True)
