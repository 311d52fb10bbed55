"""Hand over requests to a batch API, and send them: in the process that leads a run, and in each of its workers."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from parquetry.errors import ServiceRefused, TransientError
from parquetry.llm.spending import Ledger
from parquetry.masking import masked
from parquetry.plural import counted
from parquetry.settings.batch_api import BatchApiSettings
from parquetry.storage.lake.batch_ends import BatchEnd
from parquetry.storage.lake.batches import Claim, OpenBatch
from parquetry.tasks.batches.lane_user import LaneUser
from parquetry.tasks.batches.outbox import BatchRequest, Outbox, Waiting
from parquetry.tasks.batches.record_view import RecordView

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Sent:
    """The batches that a worker sent, or could not send, for one order."""

    model: str
    """model of the lane"""
    reserved: Mapping[int, float] = field(default_factory=dict)
    """number of a batch that was sent -> maximum cost in US dollars"""
    unsent: tuple[int, ...] = ()
    """numbers of batches that were recorded and not sent"""
    notes: tuple[str, ...] = ()
    """batches that were sent, a sentence each"""
    problems: Mapping[str, str] = field(default_factory=dict)
    """batches that could not be sent, a sentence each"""


class SendingLane(Generic[Result]):
    """Requests of one model that a process hands over and sends. Thread-safe.

    Args:
        user: what the lane is for.
        view: the record, as this process sees it.
        settings: limits, prices, and waits.
        ledger: ledger that pays for the requests.
        now: clock, UTC.
    """

    def __init__(
        self,
        user: LaneUser[Result],
        view: RecordView,
        settings: BatchApiSettings,
        ledger: Ledger,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.user = user
        self.is_on = False
        """True if new work is sent as batches; work that is on its way is waited for in any case"""
        self.notes: list[str] = []
        """batches that were sent and received, a sentence each"""
        self.problems: dict[str, str] = {}
        """batches that could not be sent, or asked about, a sentence each"""
        self._view, self._settings, self._ledger, self._now = view, settings, ledger, now
        self._mark = secrets.token_hex(4)
        """part of the names of its batches: processes of one run may claim the same number at the same moment"""
        self._lock = threading.RLock()
        self._outbox = Outbox(user.endpoint)
        self._reserved: dict[int, float] = {}
        """number of a batch of this run -> US dollars reserved"""
        self._unsent: list[int] = []
        """numbers of batches that were recorded and not sent"""
        self._seen = view.last
        """highest number in the record before the first request was handed over"""

    @property
    def on_their_way(self) -> list[OpenBatch]:
        """Batches that have not ended, as of the last look."""
        return self._view.on_their_way

    def waits(self, custom_id: str, make: Callable[[], BatchRequest | None]) -> bool:
        """Return True if a request is on its way, or handed over to be sent; False if it goes the ordinary way.

        Args:
            custom_id: id of the request, derived from its content.
            make: returns the request; None for one that has to go the ordinary way.

        Raises:
            BudgetReached: the budget does not allow the request.
        """
        with self._lock:
            if custom_id in self._outbox or self._view.must_wait(custom_id):
                return True
            if not self.is_on or self._view.goes_ordinary(custom_id):
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

    def sent(self) -> Sent:
        """Return what this lane sent and could not send."""
        with self._lock:
            return Sent(
                self.user.model, dict(self._reserved), tuple(self._unsent), tuple(self.notes), dict(self.problems)
            )

    def close(self) -> None:
        self._outbox.close()

    def send(self) -> None:
        """Send what was handed over, in as many batches as the limits require.

        Raises:
            StorageError: the record cannot be written.
        """
        with self._lock:
            while part := self._outbox.take(self._settings):
                self._send(part)

    def _send(self, part: Sequence[Waiting]) -> None:
        number, claim, claimed = self._claimed(part)
        if claim is None:
            return
        try:
            with tempfile.TemporaryFile(prefix="parquetry-batch-") as file:
                self._outbox.write(claimed, file)
                file_id = self.user.service.upload(file, claim.name)
        except (TransientError, ServiceRefused) as error:
            self._view.records.decide(number, "drop", self._view.run_id, self._now())
            self._not_sent(number, claimed, error)
            return
        decided_at = self._now()
        if not self._view.records.decide(number, "send", self._view.run_id, decided_at):
            # This took so long that another run gave the batch up.
            self._not_sent(number, claimed, TransientError("timeout", "the file took too long to send"))
            return
        try:
            remote = self.user.service.submit(file_id, self.user.endpoint, claim.name)
        except (TransientError, ServiceRefused) as error:
            self._view.records.end(number, BatchEnd(self._view.run_id, "refused", len(claimed)), self._now(), None)
            self._view.given_up(number)
            self._not_sent(number, claimed, error)
            return
        if remote is None:
            said = "gave no clear answer; whether it was started is looked up later"
            self.problems[f"send {number}"] = f"batch {number}: {masked(self.user.service.where.url)} {said}"
        else:
            self._view.records.sent(number, remote.id, self._now())
        self._view.add(OpenBatch(number, claim, decided_at, None if remote is None else remote.id))
        self._reserved[number] = sum(item.request.usd for item in claimed)
        usd = f", at most ${self._reserved[number]:.4f}" if self.user.priced else ""
        self.notes.append(f"batch {number} sent: {counted(len(claimed), self.user.what)}{usd}")

    def _claimed(self, part: Sequence[Waiting]) -> tuple[int, Claim | None, list[Waiting]]:
        """Claim requests that nobody else has claimed meanwhile; return the number of their batch and its claim."""
        left = list(part)
        while left:
            found = self._view.records.after(self._seen)
            self._seen = max(found, default=self._seen)
            left = self._without_others(left, found)
            number = self._seen + 1
            claim = self._claim(number, left)
            if left and self._view.records.claim(number, claim):
                self._seen = number
                return number, claim, left
        return 0, None, []

    def _without_others(self, part: Sequence[Waiting], found: Mapping[int, Claim]) -> list[Waiting]:
        """Return the requests that are in none of the claims that were found; the others wait for those batches."""
        left = {each.custom_id: each for each in part}
        for number, claim in found.items():
            taken = [each for item in claim.items if (each := left.pop(item.custom_id, None)) is not None]
            if not taken:
                continue
            self._release(taken)
            batch = self._view.records.batch(number)
            if batch is not None:
                self._view.add(batch)
            else:
                self._view.block(each.custom_id for each in taken)
        return list(left.values())

    def _claim(self, number: int, part: Sequence[Waiting]) -> Claim:
        sources = list(dict.fromkeys(each.request.owner for each in part))
        places = {owner: place for place, owner in enumerate(sources)}
        return Claim(
            name=f"{self._view.run_id}-{number}-{self._mark}",
            run_id=self._view.run_id,
            at=self._now(),
            purpose=self.user.purpose,
            model=self.user.model,
            url=masked(self.user.service.where.url),
            sources=tuple(sources),
            items=tuple(each.item(places) for each in part),
            expected_usd=sum(each.request.usd for each in part) if self.user.priced else None,
        )

    def _not_sent(self, number: int, claimed: Sequence[Waiting], error: Exception) -> None:
        self._unsent.append(number)
        self._view.block(each.custom_id for each in claimed)
        self._release(claimed)
        go_without = f'; {self.user.setting} = "never" goes without' if isinstance(error, ServiceRefused) else ""
        self.problems[f"send {number}"] = f"batch {number} could not be sent: {error}{go_without}"

    def _release(self, requests: Sequence[Waiting]) -> None:
        self._ledger.release(sum(each.request.usd for each in requests))
