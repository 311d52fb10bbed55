"""The lane of a service's batch API: one mechanism for texts of documents and for questions about chat sessions.

A run hands over requests, and what they are for waits. They are recorded, sent, recorded as sent; a later run, or this
one if it waits, finds them done, and stores the results where the ordinary way looks before it pays: vectors in a shard
that no commit names, answers among the cached ones. What a batch could not answer goes the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

from parquetry.errors import ServiceRefused, TransientError
from parquetry.llm.batch_api import RemoteBatch
from parquetry.llm.spending import Ledger, Usage
from parquetry.masking import masked
from parquetry.planning.costs import Cost
from parquetry.plural import counted
from parquetry.settings.batch_api import BatchApiSettings
from parquetry.storage.lake.batch_ends import NOT_DONE, REFUSED, BatchEnd
from parquetry.storage.lake.batches import BatchRecords, Claim, OpenBatch
from parquetry.tasks.batches.lane_user import LaneUser
from parquetry.tasks.batches.record_view import RecordView
from parquetry.tasks.batches.results import EndedBatch, take_results
from parquetry.tasks.batches.sending import SendingLane, Sent

Result = TypeVar("Result")
_State = Literal["underway", "free"]
"""a batch whose results are not here yet; one that was never sent"""
ABANDONED = timedelta(minutes=10)
"""age of a claim, or of a decision to submit, at which the process behind it counts as dead; a living one is far
quicker between the decision and the answer of the service, and one that still prepares its file loses nothing by it"""


class BatchLane(SendingLane[Result]):
    """The batches of one model in the process that leads a run: it alone asks about them, and counts their cost.

    Args:
        user: what the lane is for.
        records: record of the corpus.
        settings: limits, prices, and waits.
        ledger: ledger of the run.
        run_id: id of the run.
        now: clock, UTC.
    """

    def __init__(
        self,
        user: LaneUser[Result],
        records: BatchRecords,
        settings: BatchApiSettings,
        ledger: Ledger,
        run_id: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        view = RecordView(records, user.purpose, user.model, run_id, user.found)
        super().__init__(user, view, settings, ledger, now)
        self.costs: list[Cost] = []
        """costs of batches that ended in this run, by source"""
        self.unanswered: list[int] = []
        """numbers of the batches with requests that go the ordinary way in this run, or are not sent again"""
        self._has_changed = False
        """True if a batch has ended since the last look"""

    def collect(self) -> bool:
        """Look at all batches of this model, and store the results of those that have ended.

        Returns:
            True if one has ended since the last look.

        Raises:
            StorageError: the record or the results cannot be read or stored.
        """
        with self._lock:
            ended = self.look()
            self.settle(ended, {each.number: self.take(each) for each in ended})
            return self.has_changed()

    def look(self) -> list[EndedBatch]:
        """Ask about all batches of this model, and return those whose results can be taken."""
        with self._lock:
            self.read_record()
            ended = []
            for batch in self.on_their_way:
                remote = self._looked_up(batch)
                if remote == "free":
                    self._view.given_up(batch.number)
                    self._ledger.release(self._reserved.pop(batch.number, 0.0))
                    self._has_changed = True
                elif isinstance(remote, RemoteBatch):
                    ended.append(EndedBatch(batch, remote))
            return ended

    def read_record(self) -> None:
        """Read which batches are on their way, and take into account what has ended; ask no service."""
        with self._lock:
            open_before = {batch.number for batch in self.on_their_way}
            for number, claim, end in self._view.read(self._unsent):
                self._count(number, claim, end)
                if number in open_before:
                    self._tell(number, end)
                self._has_changed = True
            if not len(self._outbox):
                self._seen = self._view.last

    def take(self, ended: EndedBatch) -> str | None:
        """Store the results of a batch; return why they cannot be read now."""
        return take_results(ended, self.user, self._view.records, self._view.run_id, self._now)

    def settle(self, ended: Sequence[EndedBatch], problems: Mapping[int, str | None]) -> None:
        """Take the ends of batches into account, also those that another run recorded.

        Args:
            ended: the batches.
            problems: number of a batch -> why its results could not be taken; None if they were.
        """
        if not ended:
            return
        with self._lock:
            self.read_record()
            still = {batch.number for batch in self.on_their_way}
            for each in ended:
                number, errors = each.number, each.remote.errors
                if number in still:
                    said = problems[number] or "they were not stored"
                    self.problems[f"look {number}"] = f"results of batch {number} cannot be read: {said}"
                elif each.remote.status == "failed":
                    why = "; ".join(dict.fromkeys(said for said, _ in errors[:3])) or "the service gives no reason"
                    self.problems[f"failed {number}"] = f"batch {number} was refused ({why}); nothing was paid for it"

    def has_changed(self) -> bool:
        """Return True if a batch has ended since the last call."""
        with self._lock:
            found, self._has_changed = self._has_changed, False
            return found

    def add(self, sent: Sent) -> None:
        """Take into account what a worker sent: its requests were reserved in the worker's allowance."""
        with self._lock:
            self._reserved |= sent.reserved
            self._unsent.extend(sent.unsent)
            self.notes.extend(sent.notes)
            self.problems |= sent.problems

    @property
    def unsent(self) -> Collection[int]:
        """Numbers of the batches that this run recorded and did not send."""
        return tuple(self._unsent)

    def _looked_up(self, batch: OpenBatch) -> RemoteBatch | _State:
        """Return a batch that has ended; else `underway`, or `free` if it was never sent."""
        try:
            return self._state(batch)
        except (TransientError, ServiceRefused) as error:
            # Its requests stay on their way: what was paid for is not paid for again.
            self.problems[f"look {batch.number}"] = f"batch {batch.number} cannot be asked about: {error}"
            return "underway"

    def _state(self, batch: OpenBatch) -> RemoteBatch | _State:
        service, records, run_id = self.user.service, self._view.records, self._view.run_id
        if batch.claim.url != masked(service.where.url):
            raise ServiceRefused(
                f"it was sent to {batch.claim.url}, and the settings name {masked(service.where.url)}: set the address "
                f"back, or give it up with `parquetry batches --drop {batch.number}`"
            )
        is_old = self._now() - batch.since > ABANDONED
        if batch.batch_id is not None:
            remote = service.state(batch.batch_id)
        elif batch.decided_at is None:
            dropped = is_old and records.decide(batch.number, "drop", run_id, self._now())
            return "free" if dropped else "underway"
        else:
            found = service.find(batch.claim.name, batch.claim.at.timestamp())
            if found is None:
                if is_old:
                    end = BatchEnd(run_id, "never-sent", len(batch.claim.items))
                    records.end(batch.number, end, self._now(), None)
                return "free" if is_old else "underway"
            records.sent(batch.number, found.id, self._now())
            remote = found
        self.problems.pop(f"look {batch.number}", None)
        return "underway" if remote.is_underway else remote

    def _count(self, number: int, claim: Claim, end: BatchEnd) -> None:
        """Count the cost of a batch whose end this run recorded."""
        if end.run_id != self._view.run_id:
            return
        if end.ordinary or end.status in REFUSED:
            self.unanswered.append(number)
        reserved = self._reserved.pop(number, None)
        if reserved is not None:
            self._ledger.release(reserved)
        if end.usage != Usage():
            self._ledger.collect(self.user.purpose, end.usage, reserved_earlier=reserved is None)
        total = sum(end.paid)
        for owner, tokens in zip(claim.sources, end.paid, strict=False):
            if tokens:
                usd = end.usage.cost_usd * tokens / total
                self.costs.append(Cost(*owner, self.user.purpose, tokens, usd if self.user.priced else None))

    def _tell(self, number: int, end: BatchEnd) -> None:
        """Note the end of a batch that was on its way."""
        self.problems.pop(f"look {number}", None)
        if end.status in NOT_DONE:
            return
        left = end.requests - end.answered
        rest = f", {left} not ({end.failures or end.status})" if left else ""
        said = f"{counted(end.answered, self.user.what)} answered{rest}"
        self.notes.append(f"batch {number} {end.status}: {said}")
