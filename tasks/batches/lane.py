"""The lane of a service's batch API: one mechanism for texts of documents and for questions about chat sessions.

A run hands over requests, and what they are for waits. They are recorded, sent, recorded as sent; a later run, or this
one if it waits, finds them done, and stores the results where the ordinary way looks before it pays: vectors in a shard
that no commit names, answers among the cached ones. What a batch could not answer goes the ordinary way.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Generic, Literal, TypeVar

from parquetry.errors import DocumentError, ServiceRefused, TransientError
from parquetry.llm.batch_api import REQUEST_ENDED, RemoteBatch, ResultLine, result_lines
from parquetry.llm.spending import Ledger
from parquetry.masking import masked
from parquetry.planning.costs import Cost
from parquetry.plural import counted
from parquetry.settings.batch_api import BatchApiSettings
from parquetry.storage.lake.batches import BatchItem, BatchRecords, Claim, OpenBatch
from parquetry.tasks.batches.lane_user import BatchOutcome, LaneUser
from parquetry.tasks.batches.outbox import BatchRequest, Outbox, Waiting

Result = TypeVar("Result")
_State = Literal["underway", "free", "ended"]
"""a batch whose results are not here yet; one that was never sent; one that has ended"""
ABANDONED = timedelta(minutes=10)
"""age of a claim, or of a decision to submit, at which the run behind it counts as dead; a living one is far quicker
between the decision and the answer of the service, and one that still prepares its file loses nothing by it"""
STORED_TOGETHER = 4096
"""results that are stored at a time, which bounds the memory"""


class BatchLane(Generic[Result]):
    """The batches of one model in one run. Thread-safe.

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
        self.user = user
        self.is_on = False
        """True if new work is sent as batches; work that is on its way is waited for in any case"""
        self.costs: list[Cost] = []
        """costs of batches that ended in this run, by source"""
        self.notes: list[str] = []
        """batches that this run sent and received, a sentence each"""
        self.problems: dict[str, str] = {}
        """batches that could not be sent, or asked about, a sentence each"""
        self._records, self._settings, self._ledger = records, settings, ledger
        self._run_id, self._now = run_id, now
        self._lock = threading.RLock()
        self._outbox = Outbox(user.endpoint)
        self._open: list[OpenBatch] = []
        self._pending: dict[str, int] = {}
        """id of a request -> number of its batch, on its way"""
        self._ordinary: set[str] = set()
        """requests that a batch could not answer"""
        self._blocked: set[str] = set()
        """requests that are not sent again in this run, because the service refused their batch"""
        self._reserved: dict[int, float] = {}
        """number of a batch of this run -> US dollars reserved"""
        self._seen = 0
        """highest number in the record at the last look"""

    @property
    def on_their_way(self) -> list[OpenBatch]:
        """Batches that have not ended, as of the last look."""
        return list(self._open)

    def waits(self, custom_id: str, make: Callable[[], BatchRequest | None]) -> bool:
        """Return True if a request is on its way, or handed over to be sent; False if it goes the ordinary way.

        Args:
            custom_id: id of the request, derived from its content.
            make: returns the request; None for one that has to go the ordinary way.

        Raises:
            BudgetReached: the budget does not allow the request.
        """
        with self._lock:
            if custom_id in self._pending or custom_id in self._outbox or custom_id in self._blocked:
                return True
            if not self.is_on or custom_id in self._ordinary:
                return False
            request = make()
            if request is None:
                return False
            if request.usd:
                self._ledger.commit(request.usd)
            self._outbox.add(custom_id, request)
            return True

    def expected_tokens(self) -> int:
        """Return the expected tokens of the requests that were handed over and not sent."""
        with self._lock:
            return self._outbox.tokens

    def take_back(self) -> None:
        """Send nothing that was handed over: it goes the ordinary way."""
        with self._lock:
            self.is_on = False
            self._release(self._outbox.clear())

    # --- receiving

    def collect(self) -> bool:
        """Look at all batches of this model, and store the results of those that have ended.

        Returns:
            True if one has ended since the last look.

        Raises:
            StorageError: the record or the results cannot be read or stored.
        """
        with self._lock:
            self._seen = self._records.last()
            before, self._open = len(self._open), []
            self._pending.clear()
            ended = False
            for batch in self._records.open() if self._seen else ():
                if (batch.claim.purpose, batch.claim.model) != (self.user.purpose, self.user.model):
                    continue
                remote = self._looked_up(batch)
                if isinstance(remote, RemoteBatch):
                    remote = self._gathered(batch, remote)
                if remote == "ended":
                    ended = True
                elif remote == "free":
                    self._ledger.release(self._reserved.pop(batch.number, 0.0))
                else:
                    self._open.append(batch)
                    self._pending.update((item.custom_id, batch.number) for item in batch.claim.items)
            return ended or len(self._open) < before

    def _looked_up(self, batch: OpenBatch) -> RemoteBatch | _State:
        """Return a batch that has ended; else `underway`, or `free` if it was never sent."""
        try:
            return self._state(batch)
        except (TransientError, ServiceRefused) as error:
            # Its requests stay on their way: what was paid for is not paid for again.
            self.problems[f"look {batch.number}"] = f"batch {batch.number} cannot be asked about: {error}"
            return "underway"

    def _state(self, batch: OpenBatch) -> RemoteBatch | _State:
        service = self.user.service
        if batch.claim.url != masked(service.where.url):
            raise ServiceRefused(
                f"it was sent to {batch.claim.url}, and the settings name {masked(service.where.url)}: set the address "
                f"back, or give it up with `parquetry batches --drop {batch.number}`"
            )
        is_old = self._now() - batch.since > ABANDONED
        if batch.batch_id is not None:
            remote = service.state(batch.batch_id)
        elif batch.decided_at is None:
            dropped = is_old and self._records.decide(batch.number, "drop", self._run_id, self._now())
            return "free" if dropped else "underway"
        else:
            found = service.find(batch.claim.name, batch.claim.at.timestamp())
            if found is None:
                if is_old:
                    self._end(batch, "never-sent", BatchOutcome())
                return "free" if is_old else "underway"
            self._records.sent(batch.number, found.id, self._now())
            remote = found
        self.problems.pop(f"look {batch.number}", None)
        return "underway" if remote.is_underway else remote

    def _gathered(self, batch: OpenBatch, remote: RemoteBatch) -> _State:
        """Store the results of a batch that has ended; `underway` if they cannot be read now."""
        try:
            self._gather(batch, remote)
        except (TransientError, ServiceRefused) as error:
            if any(each.number == batch.number for each in self._records.open()):
                give_up = f"; `parquetry batches --drop {batch.number}` gives them up"
                hint = give_up if isinstance(error, ServiceRefused) else ""
                self.problems[f"look {batch.number}"] = f"results of batch {batch.number} cannot be read: {error}{hint}"
                return "underway"
            # Another run has stored them meanwhile, recorded the end, and deleted the files.
            self._blocked.update(item.custom_id for item in batch.claim.items)
            self._ledger.release(self._reserved.pop(batch.number, 0.0))
        return "ended"

    def _gather(self, batch: OpenBatch, remote: RemoteBatch) -> None:
        """Store the results of a batch that has ended, then record its end."""
        outcome = BatchOutcome()
        self._store(batch, remote, outcome)
        items = {item.custom_id for item in batch.claim.items}
        if remote.status == "failed":
            self._refused(batch, remote)
        elif remote.status == "completed":
            # Requests without an answer or an error.
            self._ordinary.update(items - outcome.answered)
        is_mine = self._end(batch, remote.status, outcome)
        if is_mine:
            self._account(batch, outcome)
            self.user.service.delete_files(remote.files)
        left = len(items) - len(outcome.answered)
        rest = f", {left} not ({outcome.failures or remote.status})" if left else ""
        said = f"{counted(len(outcome.answered), self.user.what)} answered{rest}"
        self.notes.append(f"batch {batch.number} {remote.status}: {said}")

    def _store(self, batch: OpenBatch, remote: RemoteBatch, outcome: BatchOutcome) -> None:
        items = {item.custom_id: item for item in batch.claim.items}
        results: list[tuple[BatchItem, Result]] = []
        part = 0
        for line in self._lines(remote):
            item = items.get(line.custom_id)
            if item is None:
                continue
            if line.custom_id in outcome.answered:
                outcome.duplicates += 1
                continue
            result = self._result(line, item, outcome)
            if result is None or item.place.partition("/")[0] in batch.forgotten:
                continue
            results.append((item, result))
            if len(results) == STORED_TOGETHER:
                self.user.store(batch, part, results)
                results, part = [], part + 1
        if results:
            self.user.store(batch, part, results)

    def _lines(self, remote: RemoteBatch) -> Iterator[ResultLine]:
        """Yield the lines of both files of a batch, one file on disk at a time."""
        for file_id in (remote.output_file, remote.error_file):
            if file_id is not None:
                with tempfile.TemporaryFile(prefix="parquetry-batch-") as file:
                    self.user.service.download(file_id, file)
                    yield from result_lines(file)

    def _result(self, line: ResultLine, item: BatchItem, outcome: BatchOutcome) -> Result | None:
        """Return the result in a line, and count its cost; None if the request failed."""
        code = line.code
        if not code:
            try:
                result, usage = self.user.read(line.body)
            except (TransientError, DocumentError) as error:
                code = error.reason
            else:
                outcome.answered.add(line.custom_id)
                outcome.usage += usage
                outcome.paid[item.source] += usage.input_tokens + usage.output_tokens
                return result
        outcome.failed[code] += 1
        if code not in REQUEST_ENDED:
            self._ordinary.add(line.custom_id)
        return None

    def _refused(self, batch: OpenBatch, remote: RemoteBatch) -> None:
        """Keep the requests of a batch that was refused as a whole, except for those at fault, for the next run."""
        items = batch.claim.items
        at_fault = {items[line - 1].custom_id for _, line in remote.errors if line and 0 < line <= len(items)}
        self._ordinary |= at_fault
        self._blocked.update(item.custom_id for item in items if item.custom_id not in at_fault)
        why = "; ".join(dict.fromkeys(said for said, _ in remote.errors[:3])) or "the service gives no reason"
        self.problems[f"failed {batch.number}"] = f"batch {batch.number} was refused ({why}); nothing was paid for it"

    def _end(self, batch: OpenBatch, status: str, outcome: BatchOutcome) -> bool:
        """Record the end of a batch; False if another run did."""
        told: Mapping[str, object] = {
            "status": status,
            "batch_id": batch.batch_id,
            "requests": len(batch.claim.items),
            "answered": len(outcome.answered),
            "duplicates": outcome.duplicates,
            "failed": {masked(code): count for code, count in outcome.failed.items()},
            "tokens": outcome.usage.input_tokens + outcome.usage.output_tokens,
            "cost_usd": outcome.usage.cost_usd if self.user.priced else None,
        }
        return self._records.end(batch.number, self._run_id, self._now(), told)

    def _account(self, batch: OpenBatch, outcome: BatchOutcome) -> None:
        reserved = self._reserved.pop(batch.number, None)
        if reserved is not None:
            self._ledger.release(reserved)
        self._ledger.collect(self.user.purpose, outcome.usage, reserved_earlier=reserved is None)
        total = sum(outcome.paid.values())
        for place, tokens in outcome.paid.items():
            usd = outcome.usage.cost_usd * tokens / total if total else 0.0
            owner = batch.claim.sources[place]
            self.costs.append(Cost(*owner, self.user.purpose, tokens, usd if self.user.priced else None))

    # --- sending

    def send(self) -> None:
        """Send what was handed over, in as many batches as the limits require.

        Raises:
            StorageError: the record cannot be written.
        """
        with self._lock:
            while part := self._outbox.take(self._settings):
                self._send(part)

    def _send(self, part: Sequence[Waiting]) -> None:
        number, claimed = self._claimed(part)
        if not claimed:
            return
        name = _name(self._run_id, number)
        kept = [item.custom_id for item in claimed]
        try:
            with tempfile.TemporaryFile(prefix="parquetry-batch-") as file:
                self._outbox.write(claimed, file)
                file_id = self.user.service.upload(file, name)
        except (TransientError, ServiceRefused) as error:
            self._records.decide(number, "drop", self._run_id, self._now())
            self._unsent(number, claimed, error)
            return
        if not self._records.decide(number, "send", self._run_id, self._now()):
            # This took so long that another run gave the batch up.
            self._unsent(number, claimed, TransientError("timeout", "the file took too long to send"))
            return
        batch = self._opened(number)
        try:
            remote = self.user.service.submit(file_id, self.user.endpoint, name)
        except (TransientError, ServiceRefused) as error:
            self._end(batch, "refused", BatchOutcome())
            self._unsent(number, claimed, error)
            return
        if remote is None:
            said = "gave no clear answer; whether it was started is looked up later"
            self.problems[f"send {number}"] = f"batch {number}: {masked(self.user.service.where.url)} {said}"
        else:
            self._records.sent(number, remote.id, self._now())
        self._pending.update(dict.fromkeys(kept, number))
        self._open.append(batch)
        self._reserved[number] = sum(item.request.usd for item in claimed)
        usd = f", at most ${self._reserved[number]:.4f}" if self.user.priced else ""
        self.notes.append(f"batch {number} sent: {counted(len(claimed), self.user.what)}{usd}")

    def _claimed(self, part: Sequence[Waiting]) -> tuple[int, list[Waiting]]:
        """Claim requests that no other run has claimed meanwhile, and return the number of their batch."""
        left = list(part)
        while left:
            found = self._records.after(self._seen)
            self._seen = max(found, default=self._seen)
            taken = {item.custom_id for claim in found.values() for item in claim.items}
            others = [each for each in left if each.custom_id in taken]
            self._blocked.update(each.custom_id for each in others)
            self._release(others)
            left = [each for each in left if each.custom_id not in taken]
            number = self._seen + 1
            if left and self._records.claim(number, self._claim(number, left)):
                self._seen = number
                return number, left
        return 0, []

    def _claim(self, number: int, part: Sequence[Waiting]) -> Claim:
        sources = list(dict.fromkeys(each.request.owner for each in part))
        places = {owner: place for place, owner in enumerate(sources)}
        return Claim(
            name=_name(self._run_id, number),
            run_id=self._run_id,
            at=self._now(),
            purpose=self.user.purpose,
            model=self.user.model,
            url=masked(self.user.service.where.url),
            sources=tuple(sources),
            items=tuple(each.item(places) for each in part),
            expected_usd=sum(each.request.usd for each in part) if self.user.priced else None,
        )

    def _unsent(self, number: int, claimed: Sequence[Waiting], error: Exception) -> None:
        self._blocked.update(each.custom_id for each in claimed)
        self._release(claimed)
        go_without = f'; {self.user.setting} = "never" goes without' if isinstance(error, ServiceRefused) else ""
        self.problems[f"send {number}"] = f"batch {number} could not be sent: {error}{go_without}"

    def _release(self, requests: Sequence[Waiting]) -> None:
        self._ledger.release(sum(each.request.usd for each in requests))

    def _opened(self, number: int) -> OpenBatch:
        return next(each for each in self._records.open() if each.number == number)

    def close(self) -> None:
        self._outbox.close()


def _name(run_id: str, number: int) -> str:
    return f"{run_id}-{number}"
