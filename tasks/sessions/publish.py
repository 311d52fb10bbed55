"""Publish learned entries: compare, ask for a review if configured, commit; retry when another run was first."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from parquetry.errors import PublishConflict, Verdict
from parquetry.model import DocumentRow
from parquetry.sessions.ledger.session_rows import FileKey, failed_row, file_row, session_row
from parquetry.sessions.merge.effects import MergeProposal
from parquetry.sessions.model import Decision
from parquetry.sessions.windows import Stretch
from parquetry.storage.entries.entries import EntryWriter, Learned
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.publishing import publish_with_retry
from parquetry.storage.replaced_files import reread
from parquetry.tasks.sessions.batch import LearnedSession
from parquetry.tasks.sessions.merge import Merged, merge
from parquetry.tasks.sessions.plan import Known, SessionPlan, known_of
from parquetry.tasks.sessions.reading import FoundSession, ReadFile
from parquetry.tasks.sessions.run import SessionRun, session_fingerprint

log = logging.getLogger("parquetry")
Review = Callable[[Sequence[MergeProposal]], Collection[str]]
"""shows merges to a person; returns the keys of those that are rejected"""


class ReviewAwaited(BaseException):
    """A run ends here because merges wait for a person, and goes on in another run: nothing failed or was published."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a publish."""

    version: int
    """version of `documents`"""
    decisions: tuple[Decision, ...]
    rows: tuple[DocumentRow, ...]
    """rows of sessions and files, including failed ones"""
    taken: frozenset[str]
    """sessions that another run had learned from meanwhile"""
    failed: Mapping[str, Verdict] = field(default_factory=dict)
    """reason of each failed session, by id"""


@dataclass
class _Reviewed:
    """The review of merges so far."""

    review: Review | None
    asked: set[str] = field(default_factory=set)
    vetoed: set[str] = field(default_factory=set)

    def is_accepted(self, proposals: Sequence[MergeProposal]) -> bool:
        """True if none of these was rejected just now."""
        fresh = [proposal for proposal in proposals if proposal.key not in self.asked]
        if self.review is None or not fresh:
            return True
        said = set(self.review(fresh)) & {proposal.key for proposal in fresh}
        self.asked.update(proposal.key for proposal in fresh)
        self.vetoed |= said
        return not said


def publish_learned(
    run: SessionRun, plan: SessionPlan, learned: Sequence[LearnedSession], review: Review | None
) -> Outcome:
    """Make everything that was learned visible, all in one commit.

    Args:
        run: the run in progress.
        plan: plan of the run.
        learned: every session of the plan, successful or not.
        review: asks a person for a review; None to publish without one.

    Raises:
        PublishConflict: other runs kept publishing first; nothing of this run is visible.
        StorageError: nothing of this run is visible.
    """
    writer = EntryWriter(run.lake, run.stamp)
    failed = {each.found.ref.session_id: each.failed for each in learned if each.failed is not None}
    quarantined = {each.found.ref.session_id: each.quarantined for each in learned}
    reviewed = _Reviewed(review)

    def attempt(conflict: PublishConflict | None) -> Outcome:
        base, taken, others = run.base, frozenset[str](), Known({}, {})
        if conflict is not None:
            log.info("%s; comparing again with what is known now", conflict)
            base, others = reread(lambda: _now(run))
            taken = _taken(plan, others)
        run.check_cancelled()
        good = [each for each in learned if each.failed is None and each.found.ref.session_id not in taken]
        merged = _merged(run, base, good, failed, reviewed)
        rows = _rows(run, plan, failed, quarantined, taken, others)
        version = base.version
        if rows:
            texts = tuple(merged.texts.values())
            version = writer.publish(base, Learned(tuple(merged.decisions), texts, rows)).version
        return Outcome(version, tuple(merged.decisions), rows, taken, failed)

    return publish_with_retry(attempt, "nothing of this run was published, its answers are kept: run it again")


def _now(run: SessionRun) -> tuple[Snapshot, Known]:
    """Return the newest version, and its sessions in the run's namespaces."""
    base = run.lake.snapshot()
    return base, known_of(current_rows(base, {namespace for namespace, _ in run.sources}, what="knowledge"))


def _merged(
    run: SessionRun,
    base: Snapshot,
    good: Sequence[LearnedSession],
    failed: dict[str, Verdict],
    reviewed: _Reviewed,
) -> Merged:
    """Compare until every remaining session could be compared and no merge is rejected any more; answers are cached."""
    while True:
        left = [each for each in good if each.found.ref.session_id not in failed]
        merged = merge(run, base, left, reviewed.vetoed)
        failed.update(merged.lost)
        if not merged.lost and reviewed.is_accepted(merged.proposals):
            return merged


def _taken(plan: SessionPlan, others: Known) -> frozenset[str]:
    """Return sessions from which another run has learned at least as much since this one was planned."""
    taken = set()
    for found in (*plan.sessions, *(copy.found for copy in plan.copies)):
        now = others.sessions.get(found.ref.session_id)
        if now is None or now.status != "indexed" or (found.known and found.known.sequence == now.sequence):
            continue
        read = now.metadata.get("messages")
        if now.content_hash == found.mark.hash or (isinstance(read, int) and read > found.mark.messages):
            taken.add(found.ref.session_id)
    return frozenset(taken)


def _rows(
    run: SessionRun,
    plan: SessionPlan,
    failed: Mapping[str, Verdict],
    quarantined: Mapping[str, Sequence[Stretch]],
    taken: Collection[str],
    others: Known,
) -> tuple[DocumentRow, ...]:
    """Return the rows of the sessions and of the files that were read."""
    rows: list[DocumentRow] = []
    verdicts: dict[FileKey, list[Verdict]] = defaultdict(list)
    for found in plan.sessions:
        verdict = failed.get(found.ref.session_id)
        if verdict is not None:
            verdicts[found.file.key].append(verdict)
        if found.ref.session_id not in taken:
            rows.append(_session_row(run, found, verdict, quarantined.get(found.ref.session_id, ())))
    for copy in plan.copies:
        # Until the other session is learned, this one counts as unread, too: its file may be the one that stays.
        verdict = failed.get(copy.of)
        if verdict is not None:
            verdicts[copy.found.file.key].append(verdict)
        if copy.found.ref.session_id not in taken:
            left = (*copy.quarantined, *quarantined.get(copy.of, ()))
            rows.append(_session_row(run, copy.found, verdict, left))
    for read in plan.files:
        row = _file_row(run, read, verdicts[read.file.key])
        now = others.files.get(row.document_id)
        if now is None or (now.content_hash, now.fingerprint, now.status) != (
            row.content_hash,
            row.fingerprint,
            row.status,
        ):
            rows.append(row)
    return tuple(rows)


def _session_row(
    run: SessionRun, found: FoundSession, verdict: Verdict | None, quarantined: Sequence[Stretch]
) -> DocumentRow:
    fingerprint = session_fingerprint(run.settings, run.prompts.distill, found.file.owner)
    row = session_row(
        found.file,
        found.known,
        found.name,
        found.title,
        found.mark,
        found.at,
        fingerprint,
        run.stamp,
        (*found.still_quarantined, *quarantined),
    )
    return row if verdict is None else failed_row(row, found.known, "distill", verdict)


def _file_row(run: SessionRun, read: ReadFile, verdicts: Sequence[Verdict]) -> DocumentRow:
    fingerprint = session_fingerprint(run.settings, run.prompts.distill, read.file.owner)
    row = file_row(read.file, fingerprint, read.content_hash, read.sessions, run.stamp)
    if read.refused is not None:
        return failed_row(row, read.file.known, *read.refused)
    if not verdicts:
        return row
    again = any(verdict.fate == "retry" for verdict in verdicts)
    detail = f"{len(verdicts)} of {read.sessions} sessions failed"
    return failed_row(row, read.file.known, "distill", Verdict("retry" if again else "fail", "sessions-failed", detail))
