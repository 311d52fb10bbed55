"""The batch API of a service in a worker: it sends texts of its batches, and takes results, for a run led elsewhere."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from parquetry.embed.base import Batchable, Embedder, Vectors
from parquetry.errors import ServiceRefused, SettingsError, TransientError
from parquetry.settings.batch_api import BatchApiSettings
from parquetry.storage.lake.batches import BatchRecords
from parquetry.tasks.batches.lane import BatchLane
from parquetry.tasks.batches.lane_user import LaneUser
from parquetry.tasks.batches.record_view import RecordView
from parquetry.tasks.batches.results import EndedBatch, take_results
from parquetry.tasks.batches.sending import SendingLane
from parquetry.tasks.batches.texts import TextLane, text_user
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.run import DocumentRun


@dataclass(frozen=True, slots=True)
class LaneOrder:
    """The lane of a model in a run, as another process needs to know it."""

    is_on: bool
    """True if new texts are sent as batches"""
    price: float | None
    """US dollars per million tokens at the ordinary price, which its workers must have too; None if unknown"""
    settings: BatchApiSettings
    """those of the run"""
    unsent: tuple[int, ...]
    """numbers of the batches that processes of the run gave up before they were sent"""
    unanswered: tuple[int, ...]
    """numbers of the batches with requests that go the ordinary way in the run, or are not sent again"""


def lane_order(run: DocumentRun, model: Model) -> LaneOrder | None:
    """Return what workers need to know of the lane of a model; None if it has none."""
    lane = run.leading.get(model.id)
    return None if lane is None else order_of(lane, run, model)


def order_of(lane: BatchLane[Vectors], run: DocumentRun, model: Model) -> LaneOrder:
    """Return what workers need to know of a lane."""
    price = model.open().price_per_million_tokens
    return LaneOrder(lane.is_on, price, run.settings.batch_api, tuple(lane.unsent), tuple(lane.unanswered))


class WorkerLanes:
    """The lanes of a worker in a run. Thread-safe.

    Args:
        run: the worker's part in the run, before it looks for vectors.
    """

    def __init__(self, run: DocumentRun) -> None:
        self._run = run
        self._records = BatchRecords(run.lake.layout)
        self._known = self._records.ended()
        self._views: dict[str, RecordView] = {}
        """the record as this process sees it, by id of the model"""
        self._found: set[str] = set()
        """shards of batches in which vectors are looked up"""
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, part: DocumentRun, model: Model, order: LaneOrder) -> Iterator[SendingLane[Vectors]]:
        """Give a batch a lane of its own, which its ledger pays for.

        Args:
            part: the run as the batch sees it.
            model: model of the batch.
            order: its lane.

        Raises:
            SettingsError: this process has another price than the run.
            StorageError: the record cannot be read.
        """
        embedder, counting = _checked(model, order), model.open()
        user = self._user(model, embedder, order)
        view = self._view(model, user)
        view.read(order.unsent, order.unanswered)
        lane = SendingLane(user, view, order.settings, part.ledger)
        lane.is_on = order.is_on
        part.text_lanes[model.id] = TextLane(lane, embedder, counting.count_tokens, order.settings.price_share)
        try:
            yield lane
        finally:
            lane.close()

    def take(self, model: Model, order: LaneOrder, number: int) -> str | None:
        """Take the results of a batch that has ended; return why they cannot be read now.

        Args:
            model: model of the batch.
            order: its lane.
            number: number of the batch.
        """
        user = self._user(model, _checked(model, order), order)
        batch = self._records.batch(number)
        if batch is None:
            # An earlier execution of this order, or another run, has taken them.
            return None
        try:
            remote = user.service.state(batch.batch_id or "")
        except (TransientError, ServiceRefused) as error:
            return str(error)
        ended = EndedBatch(batch, remote)
        return take_results(ended, user, self._records, self._run.stamp.run_id, lambda: datetime.now(UTC))

    def _user(self, model: Model, embedder: Batchable, order: LaneOrder) -> LaneUser[Vectors]:
        layout, share = self._run.lake.layout, order.settings.price_share
        return text_user(model.id, embedder, share, layout, _look_up_nothing, self._find_in)

    def _view(self, model: Model, user: LaneUser[Vectors]) -> RecordView:
        with self._lock:
            if model.id not in self._views:
                self._views[model.id] = RecordView(
                    self._records, user.purpose, user.model, self._run.stamp.run_id, user.found, self._known
                )
            return self._views[model.id]

    def _find_in(self, shards: Sequence[str]) -> None:
        new = [shard for shard in shards if shard not in self._found]
        self._run.find_in(new)
        self._found.update(new)


def _look_up_nothing(file: str, text_hashes: Iterable[str]) -> None:
    """Leave a shard to be found by the record, as all other processes of the run find it."""


def _checked(model: Model, order: LaneOrder) -> Batchable:
    """Return the embedder of a model.

    Raises:
        SettingsError: its price here is not that of the run, so that the run would tell wrong costs.
    """
    embedder: Embedder = model.open()
    if not isinstance(embedder, Batchable) or embedder.price_per_million_tokens != order.price:
        raise SettingsError(
            f"a worker on {socket.gethostname()} has another price for {model.id} than the run, whose texts go through "
            "the batch API (batch_api.embedding): give every worker the settings of the run"
        )
    return embedder
