"""Two runs that hand over the same requests at the same moment, and takeovers: one of them sends."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from parquetry.llm.batch_api import BatchService
from parquetry.llm.calls import Endpoint, RetryPolicy
from parquetry.llm.spending import Ledger, Usage
from parquetry.settings.batch_api import BatchApiSettings
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake.batch_ends import end_from
from parquetry.storage.lake.batches import BatchRecords
from parquetry.tasks.batches.lane import BatchLane
from parquetry.tasks.batches.lane_user import LaneUser
from parquetry.tasks.batches.outbox import BatchRequest
from parquetry.tasks.batches.record_view import Found
from tests.servers.batch_server import BatchServer

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
IDS = [f"id-{number}" for number in range(6)]


class Bench:
    """Lanes of several runs over one corpus, at a common time."""

    def __init__(self, root: Path, server: BatchServer) -> None:
        self.now = NOON
        self.stored: list[str] = []
        self.lanes: list[BatchLane[str]] = []
        self.on_store = lambda: None
        self._root = root
        self._server = server
        self._runs = 0

    @property
    def records(self) -> BatchRecords:
        return BatchRecords(Layout(str(self._root)))

    def lane(
        self, budget: float | None = None, ids: list[str] = IDS, run_id: str = "", found: Found | None = None
    ) -> BatchLane[str]:
        """Open the lane of a new run, or of a process of a run, to which all requests are handed over."""
        self._runs += 1
        service = BatchService(Endpoint(self._server.url, "none"), RetryPolicy(1), 10)

        def store(batch, part, results):
            self.stored.extend(item.custom_id for item, _ in results)
            self.on_store()

        def read(reply):
            return "", Usage(1, reply["usage"]["total_tokens"], 0, 0.25)

        user = LaneUser("embed", "m", "/v1/embeddings", "batch_api.embedding", "text", service, read, store, True)
        user = user if found is None else replace(user, found=found)
        ledger, run_id = Ledger(budget, "x"), run_id or f"run-{self._runs}"
        lane = BatchLane(user, self.records, BatchApiSettings(), ledger, run_id, lambda: self.now)
        self.lanes.append(lane)
        lane.is_on = True
        lane.collect()
        for custom_id in ids:
            assert lane.waits(custom_id, lambda each=custom_id: request(each))
        return lane

    def sent(self) -> Counter[str]:
        return Counter(line["custom_id"] for batch in self._server.batches for line in batch.lines)


def request(custom_id: str) -> BatchRequest:
    body = {"model": "m", "input": custom_id, "encoding_format": "float"}
    return BatchRequest(body, ("default", "docs"), 10, 0.5, 4)


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture
def bench(tmp_path, server) -> Bench:
    made = Bench(tmp_path / "corpus", server)
    yield made
    for lane in made.lanes:
        lane.close()


def send_together(lanes):
    """Have lanes send at the same moment, each in a thread of its own."""
    start = threading.Barrier(len(lanes))

    def send(lane):
        start.wait()
        lane.send()

    threads = [threading.Thread(target=send, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_runs_at_the_same_moment_one_claims_each_request(bench):
    send_together([bench.lane(ids=IDS[first:]) for first in (0, 2, 0, 1)])
    assert bench.sent() == Counter(IDS)


def test_claim_that_another_run_ended_meanwhile_is_not_sent_again(bench, server):
    slow, quick = bench.lane(), bench.lane()
    quick.send()
    server.complete()
    assert quick.collect()
    slow.send()
    assert bench.sent() == Counter(IDS)
    assert slow.waits("id-0", lambda: request("id-0")), "this run looks for its result no more"


def test_abandoned_claim_is_free_after_ten_minutes_and_its_owner_sends_nothing(bench, server):
    slow = bench.lane()
    first = threading.Event()

    def gate(method, path):
        """Let another run come twice while the file is being sent."""
        if path == "/v1/files" and not first.is_set():
            first.set()
            server._lock.release()
            bench.now += timedelta(minutes=9)
            bench.lane().send()
            assert server.batches == []
            bench.now += timedelta(minutes=2)
            bench.lane().send()
            server._lock.acquire()

    server.gate = gate
    slow.send()
    assert bench.sent() == Counter(IDS)
    assert "took too long to send" in next(iter(slow.problems.values()))


def test_what_was_reserved_is_given_back_or_replaced_by_the_cost(bench, server):
    lane = bench.lane(budget=3.0)
    with pytest.raises(Exception, match="does not allow the next call"):
        lane.waits("one-more", lambda: request("one-more"))
    lane.send()
    server.complete()
    lane.collect()
    assert lane.costs[0].cost_usd == pytest.approx(6 * 0.25)
    assert lane.waits("one-more", lambda: request("one-more")), "1.5 of 3 are spent"
    lane.take_back()
    for number in range(3):
        lane.is_on = True
        assert lane.waits(f"more-{number}", lambda: request("more"))
    assert sorted(bench.stored) == IDS


def test_only_one_of_two_runs_counts_the_cost_of_a_batch(bench, server):
    bench.lane().send()
    server.complete()

    def come_between():
        bench.on_store = lambda: None
        bench.lane(ids=[])

    bench.on_store = come_between
    bench.lane(ids=[])
    assert bench.stored == [*IDS, *IDS]
    assert bench.records.open() == []
    assert [len(lane.costs) for lane in bench.lanes] == [0, 0, 1]
    assert [lane.notes[-1] for lane in bench.lanes[1:]] == ["batch 1 completed: 6 texts answered"] * 2


def test_results_that_another_run_took_and_deleted_meanwhile_are_there(bench, server):
    """Both see that the batch is done; the files go when the first of them has stored what is in them."""
    bench.lane(budget=3.0).send()
    server.complete()

    def come_between(method, path):
        if path.endswith("/content"):
            server.gate = lambda _, __: None
            server._lock.release()
            bench.lane(ids=[])
            server._lock.acquire()

    server.gate = come_between
    first = bench.lanes[0]
    assert first.collect()
    assert server.deleted
    assert sorted(bench.stored) == IDS
    assert (first.problems, first.on_their_way, bench.records.open()) == ({}, [], [])
    assert [len(lane.costs) for lane in bench.lanes] == [0, 1]
    assert first.waits("id-0", lambda: request("id-0")), "nothing of it is sent again by this run"


def test_results_that_cannot_be_read_stay_on_their_way_and_the_run_goes_on(bench, server):
    bench.lane().send()
    server.complete()
    (batch,) = server.batches
    kept = server.files.pop(batch.files["output"])
    late = bench.lane()
    assert [each.number for each in late.on_their_way] == [1]
    assert "results of batch 1 cannot be read: " in (told := late.problems["look 1"])
    assert "; `parquetry batches --drop 1` gives them up" in told
    server.files[batch.files["output"]] = kept
    assert late.collect()
    assert (late.problems, sorted(bench.stored)) == ({}, IDS)


def test_of_processes_of_one_run_at_the_same_moment_one_claims_each_request(bench):
    """Both claim the first free number, in the name of the same run."""
    lanes = [bench.lane(ids=IDS[first:], run_id="run-1") for first in (0, 2, 0, 1)]
    send_together(lanes)
    assert bench.sent() == Counter(IDS)
    assert sum(len(lane.sent().reserved) for lane in lanes) == len(bench.records.open())


def test_batch_that_another_run_takes_while_this_one_waits_is_not_bought_again(bench, server):
    """It is not on its way any more, and its results are looked up where that run stored them."""
    found = []
    waiting = bench.lane(found=lambda number, claim, end: found.append((number, end.parts)))
    waiting.send()
    server.complete()
    assert bench.lane(ids=[]).costs
    assert waiting.collect()
    assert (waiting.on_their_way, found) == ([], [(1, 1)])
    assert waiting.waits("id-0", lambda: request("id-0"))
    assert (waiting.expected_tokens(), waiting.costs) == (0, [])


def test_what_workers_sent_counts_in_the_budget_until_it_is_answered(bench, server):
    leading, working = bench.lane(budget=4.0, ids=[], run_id="run-1"), bench.lane(run_id="run-1")
    working.send()
    leading._ledger.commit(3.0)
    leading.add(working.sent())
    assert leading.notes == ["batch 1 sent: 6 texts, at most $3.0000"]
    leading.read_record()
    assert [batch.number for batch in leading.on_their_way] == [1]
    assert leading._ledger.free_usd == pytest.approx(1.0)
    server.complete()
    assert leading.collect()
    assert leading._ledger.free_usd == pytest.approx(4.0 - 6 * 0.25)
    assert [cost.cost_usd for cost in leading.costs] == [6 * 0.25]


def test_end_of_an_earlier_version_is_read(bench):
    """It has no usage by source, and names no requests for the ordinary way."""
    end = end_from({"run_id": "r", "status": "completed", "requests": 2, "tokens": 7, "cost_usd": 0.5, "batch_id": "b"})
    assert (end.usage, end.paid, end.parts, end.ordinary) == (Usage(0, 7, 0, 0.5), (), 0, frozenset())
