"""Terminal output of runs: the report of a refresh, its plan and the space that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from parquetry.planning.kept import KeptDocuments
from parquetry.planning.report import RunReport, dollars, failures_by_reason, published_line
from parquetry.plural import counted
from parquetry.printing import tell

if TYPE_CHECKING:
    from parquetry.planning.estimate import Amount, Estimate, SourceEstimate
    from parquetry.sessions.report import SessionsReport
    from parquetry.storage.lake.batches import OpenBatch
    from parquetry.tasks.documents.plan import RefreshPlan
    from parquetry.tasks.documents.space import DiskSpace

SHOWN_FAILURES = 20


def print_report(report: RunReport, root: str) -> None:
    """Print the report of a refresh."""
    counts = report.documents
    seen = f"{counted(counts.scanned, 'document')} in {report.seconds:.1f} s"
    parts = [f"{value} {name}" for name, value in counts.as_dict().items() if value and name != "scanned"]
    tell(f"{seen}: {', '.join(parts) or 'nothing to do'}.")
    work = report.work
    if work.chunks_written:
        cost = "" if work.cost_usd == 0 else f", {priced(work.cost_usd)}"
        tell(
            f"{counted(work.chunks_written, 'chunk')}: {work.chunks_embedded} embedded "
            f"({counted(work.tokens, 'token')}{cost}), {work.chunks_reused} reused."
        )
    tell(published_line(root, report))
    print_failures(report)
    print_kept(report.kept)
    for line in report.left_out:
        tell(f"Note: {line}.")
    for line in report.empty:
        tell(f"Warning: {line}.")
    print_batches(report)
    for outage in report.outages:
        tell(f"Failed: {outage}.")
    for refusal in report.refused:
        tell(f"Refused: {refusal}.")


def print_batches(report: RunReport | SessionsReport) -> None:
    """Print what was sent to and received from the batch API of a service, and what waits for it."""
    for note in report.batches:
        tell(f"  {note}")
    for problem in report.batch_problems:
        tell(f"Failed: {problem}.")
    for line in report.suspended:
        tell(f"Suspended: {line}.")


def print_failures(report: RunReport) -> None:
    """Print the documents that are not indexed, with reasons; by most frequent reason when there are many."""
    if len(report.failures) > SHOWN_FAILURES:
        for reason, count in failures_by_reason(report.failures).items():
            tell(f"  {count} x {reason}")
        tell("  every one of them: parquetry documents --status failed, --status skipped")
        return
    for failure in report.failures:
        tell(f"  {failure.status} {failure.uri}: {failure.stage}/{failure.reason}: {failure.detail}")


def print_kept(kept: Sequence[KeptDocuments]) -> None:
    """Print the documents kept because their source could not be listed completely."""
    for each in kept[:SHOWN_FAILURES]:
        tell(f"Kept: {each}.")
    rest = kept[SHOWN_FAILURES:]
    if rest:
        documents = counted(sum(each.documents for each in rest), "document")
        tell(f"Kept: {documents} at {len(rest)} more places; --json names them all.")


def print_plan(plan: RefreshPlan, *, verbose: bool) -> None:
    """Print the plan of a refresh."""
    for source in plan.sources:
        changes = [change for change in (*source.changes, *source.handed_over) if change.effort != "nothing"]
        tell(f"Source {source.source}: {counted(source.listed, 'document')}, {len(changes)} to do.")
        shown = changes if verbose else changes[:SHOWN_FAILURES]
        for change in shown:
            path = change.item.path if change.item else change.known.path if change.known else change.document_id
            tell(f"  {change.action} {path} ({change.reason})")
        if len(shown) < len(changes):
            tell(f"  ... and {len(changes) - len(shown)} more; -v shows all")
        for warning in source.warnings:
            tell(f"  note {warning}")
        if source.refused:
            tell(f"  Refused: {source.refused}.")
    print_kept(plan.kept)
    for line in plan.left_out:
        tell(f"Note: {line}.")
    for line in plan.empty:
        tell(f"Warning: {line}.")
    _print_estimate(plan.estimate)


def _print_estimate(estimate: Estimate) -> None:
    is_free = estimate.cost_usd == 0
    says_more = len(estimate.sources) > 1 or any(each.changed.chunks or each.assumed for each in estimate.sources)
    if says_more and not is_free:
        for each in estimate.sources:
            tell(f"Source {each.source}: {_expected(each)}.")
    if not estimate.chunks:
        tell("Nothing to embed.")
        return
    for embedder, price in estimate.prices.items():
        if price.usd_per_million_tokens:
            tell(f"Price of {embedder}: {price}.")
    likely_batch = _in_batches(estimate.likely_usd_batch)
    expected = f"{_amount(estimate.likely)}{likely_batch}"
    _print_way(estimate)
    if estimate.unbounded:
        documents = counted(estimate.unbounded, "document")
        tell(f"Likely {expected}.")
        tell(
            f"No upper bound: the size of {documents} does not tell how much text they hold. refresh.budget_usd "
            "bounds what is spent."
        )
        return
    batch = _in_batches(estimate.cost_usd_batch)
    tell(
        f"At most {counted(estimate.chunks, 'chunk')}, {counted(estimate.tokens, 'token')}, "
        f"{priced(estimate.cost_usd)}{batch}; likely {expected}."
    )


def _in_batches(cost_usd: float | None) -> str:
    """Return what work costs through a batch API, in brackets; nothing where it costs nothing."""
    return f" ({dollars(cost_usd)} through the batch API)" if cost_usd else ""


def _print_way(estimate: Estimate) -> None:
    """Print which embedders get their texts as batches, and what that is likely to cost."""
    if estimate.batched:
        names = ", ".join(sorted(estimate.batched))
        cost = "" if estimate.expected_usd is None else f"; likely {dollars(estimate.expected_usd)}"
        tell(f"Texts for {names} go through the batch API (batch_api.embedding){cost}.")


def _expected(source: SourceEstimate) -> str:
    """Return what a source is likely to cost: new documents, changed ones, and how sure that is."""
    parts = []
    if source.documents_new:
        parts.append(f"{counted(source.documents_new, 'new document')}, likely {_amount(source.new)}")
    if source.documents_changed:
        documents = counted(source.documents_changed, "changed document")
        parts.append(f"{documents}, likely {_amount(source.changed)}, less what stays the same in them")
    if source.assumed:
        documents = counted(source.assumed, "document")
        parts.append(f"a guess for {documents} of kinds that the corpus does not hold yet")
    return "; ".join(parts)


def _amount(amount: Amount) -> str:
    return f"{counted(amount.chunks, 'chunk')}, {counted(amount.tokens, 'token')}, {priced(amount.cost_usd)}"


def print_on_their_way(batches: Iterable[OpenBatch]) -> None:
    """Print the batches of texts that are on their way at a service."""
    for batch in batches:
        if batch.claim.purpose == "embed":
            tell(f"On the way, and not bought again: batch {batch}.")


def print_space(spaces: Iterable[DiskSpace]) -> None:
    """Print the disk space that a refresh would take."""
    for space in spaces:
        tell(f"Space: {space.line}.")
        if space.refusal is not None:
            tell(f"A refresh is refused: {space.refusal}.")


def priced(cost_usd: float | None) -> str:
    """Format a cost; an unknown one names the missing price."""
    return "cost unknown (no price is set)" if cost_usd is None else dollars(cost_usd)
