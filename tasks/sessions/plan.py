"""Plan of a run over chat sessions and an estimate of its cost, before anything is spent."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

from parquetry.model import SESSION_TYPE, TRANSCRIPTS_TYPE, DocumentRow, Failure, Listing
from parquetry.planning.rows import failure_of
from parquetry.plural import counted
from parquetry.sessions.distill.learn import distill, estimated_tokens
from parquetry.sessions.distill.recall_filter import recalled_texts
from parquetry.sessions.ledger.session_rows import (
    FileKey,
    SessionFile,
    file_id,
    file_key_of,
    owner_of,
    quarantined_of,
    reason_to_read,
)
from parquetry.sessions.model import Transcript
from parquetry.sessions.prompts import Prompt
from parquetry.sessions.report import SESSION_COUNTS, failure_json
from parquetry.sessions.windows import Stretch, windows_to_read
from parquetry.settings.llm import LlmPrice
from parquetry.settings.sections import Settings
from parquetry.sources.base import Source
from parquetry.sources.nesting import told
from parquetry.sources.registry import Scope
from parquetry.tasks.budget import check_budget
from parquetry.tasks.documents.fetching import Fetching
from parquetry.tasks.documents.listing import list_scopes, listing_failures
from parquetry.tasks.documents.plan import nothing_found
from parquetry.tasks.engine.retries import Retries
from parquetry.tasks.engine.workers import WorkerPool
from parquetry.tasks.sessions.llm_cache import CacheMiss, CacheOnlyLlm
from parquetry.tasks.sessions.reading import FoundSession, ReadFile, SessionReader
from parquetry.tasks.sessions.run import session_fingerprint
from parquetry.tasks.sessions.spool import Spooled

COMPARISON_TOKENS = (1600, 300)
"""tokens assumed for comparing the drafts of a window, whose number is unknown beforehand: a prompt with six
statements of three candidates each; their verdicts"""


@dataclass(frozen=True, slots=True)
class SessionEstimate:
    """Estimated cost of a run. Tokens are estimated from characters, and comparisons are assumed."""

    windows: int = 0
    """number of session parts that the language model has to read"""
    kept: int = 0
    """number of parts with a cached answer: they cost nothing"""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    cost_usd_batch: float = 0.0
    """US dollars, with the batch API for the questions that it takes; comparisons are asked the ordinary way"""
    is_batched: bool = False
    """True if the settings send this run's questions as batches"""
    price: LlmPrice | None = None
    """price that it counts with; None if the settings give none"""

    @property
    def priced(self) -> bool:
        """True if the settings give token prices."""
        return self.price is not None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def expected_usd(self) -> float:
        """US dollars, in the way that the questions are sent."""
        return self.cost_usd_batch if self.is_batched else self.cost_usd


@dataclass(frozen=True, slots=True)
class Copy:
    """A session that another file of the same source contains, too: it is learned from there."""

    found: FoundSession
    of: str
    """id of the other session"""
    quarantined: tuple[Stretch, ...]
    """quarantined messages of the other session, if that was read before this run"""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The plan of a run."""

    files: tuple[ReadFile, ...]
    """files that had to be read, by place"""
    sessions: tuple[FoundSession, ...]
    """sessions to learn from, oldest first"""
    copies: tuple[Copy, ...]
    """copies of these, and of sessions that were read before"""
    counts: Mapping[str, int]
    """numbers of sessions by name: SESSION_COUNTS"""
    failures: tuple[Failure, ...]
    """listings that failed, and sessions that failed before and are not retried"""
    warnings: tuple[str, ...]
    estimate: SessionEstimate

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry sessions plan --json` prints."""
        estimate = self.estimate
        return {
            "sessions": dict(self.counts),
            "estimate": {
                "windows": estimate.windows,
                "kept": estimate.kept,
                "input_tokens": estimate.input_tokens,
                "output_tokens": estimate.output_tokens,
                "cost_usd": round(estimate.cost_usd, 6) if estimate.priced else None,
                "cost_usd_batch": round(estimate.cost_usd_batch, 6) if estimate.priced else None,
                "batched": estimate.is_batched,
                "price": None if estimate.price is None else estimate.price.model_dump(mode="json"),
            },
            "to_read": [
                {"uri": found.ref.uri, "change": found.change, "messages": found.mark.messages}
                for found in self.sessions
            ],
            "failures": [failure_json(failure) for failure in self.failures],
            "warnings": list(self.warnings),
        }


@dataclass
class Estimator:
    """Add up the estimated cost of sessions."""

    settings: Settings
    prompt: Prompt
    llm: CacheOnlyLlm
    windows: int = 0
    kept: int = 0
    tokens: list[int] = field(default_factory=lambda: [0, 0])

    def look(self, found: FoundSession, transcript: Transcript) -> None:
        """Add a session to the estimate."""
        chosen = self.settings.sessions
        recalled = recalled_texts(transcript.messages)
        for window in windows_to_read(transcript, found.first_new, found.retried, chosen):
            try:
                distill(window, found.ref, found.at, recalled, self.llm, self.prompt, chosen)
                self.kept += 1
            except CacheMiss:
                self.windows += 1
                for side, expected in enumerate(estimated_tokens(window, self.prompt)):
                    self.tokens[side] += expected + COMPARISON_TOKENS[side]

    @property
    def estimate(self) -> SessionEstimate:
        read, written = self.tokens
        cost = self._cost(read, written)
        compared = [self.windows * each for each in COMPARISON_TOKENS]
        batches = self.settings.batch_api
        asked = read + written - sum(compared)
        saved = (cost - self._cost(*compared)) * (1 - batches.price_share)
        is_batched = self.windows > 0 and batches.takes(batches.sessions, asked)
        return SessionEstimate(
            self.windows, self.kept, read, written, cost, cost - saved, is_batched, self.settings.llm.price
        )

    def _cost(self, read: int, written: int) -> float:
        price = self.settings.llm.price
        return 0.0 if price is None else price.cost_usd(read, written)


@dataclass(frozen=True, slots=True)
class Known:
    """The published state of sessions, from the current rows of `documents`."""

    files: Mapping[str, DocumentRow]
    """rows of files by id"""
    sessions: Mapping[str, DocumentRow]
    """rows of sessions by id"""

    def of_file(self) -> Mapping[FileKey, list[DocumentRow]]:
        """The sessions of each file."""
        found: dict[FileKey, list[DocumentRow]] = defaultdict(list)
        for row in self.sessions.values():
            found[file_key_of(row)].append(row)
        return found

    def quarantined(self) -> frozenset[FileKey]:
        """The files with a partly quarantined session."""
        return frozenset(file_key_of(row) for row in self.sessions.values() if quarantined_of(row))


def known_of(rows: Sequence[DocumentRow]) -> Known:
    """Return the sessions and session files among the current rows."""
    return Known(
        {row.document_id: row for row in rows if row.media_type == TRANSCRIPTS_TYPE},
        {row.document_id: row for row in rows if row.media_type == SESSION_TYPE},
    )


def plan_sessions(
    settings: Settings,
    scopes: Sequence[tuple[Scope, Source]],
    known: Known,
    prompt: Prompt,
    fetching: Fetching,
    run_id: str,
    *,
    retry_quarantined: bool = False,
    llm: CacheOnlyLlm | None = None,
    keep: Callable[[Transcript], Spooled] | None = None,
    retries: Retries | None = None,
    check_cancelled: Callable[[], None] = lambda: None,
) -> SessionPlan:
    """List the sources, read the files that may hold something new, and find the sessions to learn from.

    Args:
        settings: model, rules and limits.
        scopes: scopes of the run, with the sources to list.
        known: published sessions of all namespaces concerned.
        prompt: prompt for learning.
        fetching: reads the files.
        run_id: id of the run, for failures.
        retry_quarantined: True to read quarantined messages again.
        llm: recognises cached answers; None without an estimate.
        keep: writes a session to the spool; None for a plan that is only shown.
        retries: retries of the run; None outside a run.
        check_cancelled: raises if the run was cancelled.

    Raises:
        SettingsError: the place of a source does not exist.
    """
    listings = list_scopes(scopes, retries or Retries(settings.refresh.attempts, time.sleep))
    files = _files([scope for scope, _ in scopes], listings, known)
    fingerprint = partial(_fingerprint, settings, prompt)
    quarantined = known.quarantined() if retry_quarantined else frozenset()
    to_read = [file for file in files if file.key in quarantined or reason_to_read(file, fingerprint(file))]
    estimator = Estimator(settings, prompt, llm) if llm else None
    seen = estimator.look if estimator else None
    with closing(WorkerPool(settings.extraction, settings.chunking, None)) as pool:
        most = settings.extraction.max_bytes
        reader = SessionReader(
            fetching, pool, known.sessions, fingerprint, most, keep, seen, check_cancelled, quarantined
        )
        read = sorted(reader.read(to_read), key=lambda each: each.file.key)
    sessions, copies = _apart((found for each in read for found in each.found), reader)
    listed = zip((scope for scope, _ in scopes), listings, strict=True)
    unread_rows = _rows_of_unread(files, to_read, known)
    before = [*(row for row in unread_rows if row.status == "failed"), *(row for each in read for row in each.failed)]
    return SessionPlan(
        tuple(read),
        tuple(sessions),
        tuple(copies),
        _counts(read, sessions, copies, unread_rows),
        (*listing_failures(listed, run_id), *(failure_of(row, known=True) for row in before)),
        _warnings(scopes, listings, read),
        estimator.estimate if estimator else SessionEstimate(),
    )


def _fingerprint(settings: Settings, prompt: Prompt, file: SessionFile) -> str:
    return session_fingerprint(settings, prompt, file.owner)


def check_session_budget(plan: SessionPlan, budget_usd: float | None) -> None:
    """Stop before a run that would exceed its budget.

    Raises:
        RefusedError: gives the estimate and the budget.
    """
    what = f"learning from {counted(len(plan.sessions), 'session')}"
    check_budget(what, plan.estimate.expected_usd, plan.estimate.tokens, budget_usd, "sessions.budget_usd")


def _apart(found: Iterable[FoundSession], reader: SessionReader) -> tuple[list[FoundSession], list[Copy]]:
    """Split sessions into those to learn from, oldest first, and copies of these or of known ones.

    Two exports side by side contain copies. Of equal sessions, the one already read furthest is learned from.
    """
    sessions: dict[Hashable, FoundSession] = {}
    copies: list[Copy] = []
    for each in sorted(found, key=lambda each: (-each.first_new, not each.retried, each.file.item.path, each.name)):
        if (row := reader.copied(each)) is not None:
            copies.append(Copy(each, row.document_id, quarantined_of(row)))
        elif (other := sessions.setdefault(each.content, each)) is not each:
            copies.append(Copy(each, other.ref.session_id, other.still_quarantined))
    return sorted(sessions.values(), key=attrgetter("at", "ref.session_id")), copies


def _files(scopes: Sequence[Scope], listings: Sequence[Listing], known: Known) -> list[SessionFile]:
    return [
        SessionFile(
            scope.namespace,
            scope.name,
            item,
            owner_of(scope.settings, scope.namespace, item.access),
            known.files.get(file_id(scope.namespace, scope.name, item.path)),
        )
        for scope, listing in zip(scopes, listings, strict=True)
        for item in listing.items
    ]


def _rows_of_unread(files: Sequence[SessionFile], to_read: Sequence[SessionFile], known: Known) -> list[DocumentRow]:
    """Return the known sessions of files that need not be read again, and the failed ones among these files."""
    reading = {file.key for file in to_read}
    of_file = known.of_file()
    found: list[DocumentRow] = []
    for file in files:
        if file.key in reading:
            continue
        rows = of_file.get(file.key, [])
        found.extend(rows)
        if file.known is not None and file.known.status == "failed" and not any(row.status == "failed" for row in rows):
            found.append(file.known)
    return found


def _warnings(
    scopes: Sequence[tuple[Scope, Source]], listings: Sequence[Listing], read: Sequence[ReadFile]
) -> tuple[str, ...]:
    """Report sources without files, files without sessions, and parts of others that were lost."""
    empty = [
        nothing_found(scope)
        for (scope, _), listing in zip(scopes, listings, strict=True)
        if listing.complete and not listing.items and not listing.left_out
    ]
    without = [each.file.item.uri for each in read if each.refused is not None and each.refused[1].fate == "skip"]
    files = counted(len(without), "new file holds", "new files hold")
    others = [f"{files} no chat session, as {without[0]}"] if without else []
    left = [told(listing.source, listing.left_out) for listing in listings if listing.left_out]
    return (*empty, *left, *others, *(warning for each in read for warning in each.unread))


def _counts(
    read: Sequence[ReadFile],
    sessions: Sequence[FoundSession],
    copies: Sequence[Copy],
    unread_rows: Sequence[DocumentRow],
) -> dict[str, int]:
    counts: Counter[str] = Counter(found.change for found in sessions)
    counts["failed"] = sum(row.status == "failed" for row in unread_rows)
    counts["unchanged"] = len(copies) + sum(row.status == "indexed" for row in unread_rows)
    for each in read:
        counts["failed"] += len(each.failed) + (each.refused is not None and each.refused[1].fate != "skip")
        counts["unchanged"] += each.sessions - len(each.found) - len(each.failed)
    counts["scanned"] = counts.total()
    return {name: counts[name] for name in SESSION_COUNTS}
