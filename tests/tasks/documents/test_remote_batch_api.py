"""Texts that workers send through a batch API: orders and reports as they cross the wire, executed in one process."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from parquetry.embed.base import no_gate
from parquetry.errors import OutageError, RunSuspended
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.sources.uploads.store import UploadStore
from parquetry.tasks.documents.remote import carry_out
from tests.flows.orchestration.corpora import content_of
from tests.flows.pipelines.batch_workshop import (
    MOST,
    PRICE,
    TEXTS,
    check_all_is_there,
)
from tests.servers.embedding_server import refusal
from tests.tasks.documents.batch_orders import (
    TOKENS,
    WAITS,
    by_new_workers,
    is_for_results,
    refresh,
    sent,
    server,
    workshop,
)
from tests.tasks.documents.orders_engine import OrdersEngine, another_process
from tests.workshop import Workshop

pytestmark = pytest.mark.slow
__all__ = ["server", "workshop"]


def test_workers_send_texts_and_a_later_run_publishes_what_threads_would(workshop, server, tmp_path):
    first = refresh(workshop, engine := OrdersEngine())
    assert isinstance(first.error, RunSuspended)
    assert (first.documents.added, first.work.cost_usd, first.costs) == (0, 0.0, ())
    assert first.suspended[0].startswith("6 documents wait for 3 batches of 6 requests, on the way since ")
    assert first.batches == tuple(f"batch {number} sent: 2 texts, at most ${2 * MOST:.4f}" for number in (1, 2, 3))
    assert len(engine.orders) == 3
    assert refresh(workshop).error.exit_code == 6
    assert sent(server) == Counter(TEXTS)

    server.complete()
    second = refresh(workshop, engine := OrdersEngine())
    assert (second.error, second.documents.added) == (None, 6)
    assert [is_for_results(order) for order in engine.orders] == [True] * 3 + [False] * 3
    assert "grows" not in "".join(engine.orders)
    assert second.batches == tuple(f"batch {number} completed: 2 texts answered" for number in (1, 2, 3))
    assert (second.work.tokens, second.work.cost_usd) == (TOKENS, pytest.approx(TOKENS * PRICE / 2e6))
    (cost,) = second.costs
    assert (cost.source, cost.purpose, cost.tokens) == ("docs", "embed", TOKENS)
    assert (server.ordinary, server.files) == ([], {})
    check_all_is_there(workshop, server)

    threads = Workshop(tmp_path / "threads")
    threads.sections |= {key: value for key, value in workshop.sections.items() if key not in ("run", "batch_api")}
    threads.folder = workshop.folder
    threads.refresh()
    assert content_of(workshop.settings.corpus.root) == content_of(threads.settings.corpus.root)


def test_neither_orders_nor_reports_hold_a_text_or_a_vector(workshop, server):
    told: list[str] = []

    def noted(execution, _):
        told.append(execution())
        return told[-1]

    workshop.sections["batch_api"] |= WAITS
    server.ends_at_once = True
    engine = OrdersEngine(noted)
    assert refresh(workshop, engine).documents.added == 6
    assert len(told) == len(engine.orders) == 9, "three batches, their results, and the documents again"
    assert not [each for each in told + engine.orders if "grows" in each or '"vector"' in each or len(each) > 8000]


def test_run_that_waits_finds_what_came_and_counts_the_cost_once(workshop, server):
    workshop.sections["batch_api"] |= WAITS
    workshop.sections["refresh"] |= {"budget_usd": 20.0}
    server.ends_at_once = True
    report = refresh(workshop)
    assert (report.error, report.documents.added, report.refused) == (None, 6, ())
    assert report.work.cost_usd == pytest.approx(TOKENS * PRICE / 2e6)
    assert sum(cost.tokens for cost in report.costs) == TOKENS
    assert not list((workshop.root / "corpus" / "orders").iterdir())
    check_all_is_there(workshop, server)


def test_equal_texts_of_several_batches_are_sent_once(workshop, server):
    for number in range(8):
        workshop.write(f"copy{number}.md", TEXTS[0])
    workshop.sections["refresh"] |= {"batch_documents": 1, "workers": 4}
    assert refresh(workshop).error.exit_code == 6
    assert sent(server) == Counter(TEXTS)
    server.complete()
    assert refresh(workshop).documents.added == 14
    assert server.charged() == Counter(TEXTS)


def test_of_workers_that_hand_over_the_same_text_at_the_same_time_one_sends_it(workshop, server):
    """The other one has read the record before there was a claim, and finds it when it claims its own."""
    for path in workshop.folder.iterdir():
        path.unlink()
    for number in range(2):
        workshop.write(f"{number}.md", TEXTS[0])
    workshop.sections["refresh"] |= {"batch_documents": 1}
    begun, ended = threading.Event(), threading.Event()
    server.gate = lambda method, path: begun.set() or (ended.wait(60), None)[1] if path == "/v1/files" else None
    second: list[str] = []

    def together(execution, number):
        """Begin the first order, execute the second one meanwhile, and return their answers in turn."""
        if number:
            return second.pop()
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(execution)
            assert begun.wait(60)
            with another_process():
                second.append(carry_out(engine.waiting[0], workshop.settings, no_gate))
            ended.set()
            return running.result()

    engine = OrdersEngine(together)
    refresh(workshop, engine)
    assert sent(server) == Counter(TEXTS[:1])


@pytest.mark.parametrize("execute", [lambda execution, _: execution(), by_new_workers], ids=["kept", "new"])
def test_requests_that_failed_in_a_batch_go_the_ordinary_way_in_workers(workshop, server, execute):
    workshop.sections["batch_api"] |= WAITS

    def end(method, path):
        for batch in server.batches:
            if batch.status == "validating":
                server.refuses = lambda body: "elm" in str(body["input"])
                server.answer(batch)
                server.refuses = lambda _: False
                server.end(batch, "completed")

    server.after = end
    report = refresh(workshop, OrdersEngine(execute))
    assert (report.error, report.documents.added) == (None, 6)
    assert [body["input"] for body in server.ordinary] == [[TEXTS[1]]]
    assert any("completed: 1 text answered, 1 not (1 x 400)" in each for each in report.batches)
    check_all_is_there(workshop, server)


def test_what_expired_is_sent_again_by_workers(workshop, server):
    refresh(workshop)
    server.answer(server.batches[0], 1)
    server.end(server.batches[0], "expired")
    server.batches[1].status = "cancelled"
    server.complete(server.batches[2])
    report = refresh(workshop)
    assert (report.documents.added, report.error.exit_code, server.ordinary) == (3, 6, [])
    assert sum(len(batch.lines) for batch in server.batches[3:]) == 3
    server.complete()
    assert refresh(workshop).documents.added == 3
    check_all_is_there(workshop, server)


def test_batch_that_is_refused_as_a_whole_is_neither_sent_again_nor_bought_the_ordinary_way(workshop, server):
    workshop.sections["batch_api"] |= WAITS

    def end(method, path):
        for batch in server.batches:
            if batch.status == "validating" and batch.id == "batch-1":
                server.fail(batch, "token_limit_exceeded", "Enqueued token limit reached")
            elif batch.status == "validating":
                server.complete(batch)

    server.after = end
    report = refresh(workshop, OrdersEngine(by_new_workers))
    assert isinstance(report.error, OutageError)
    assert "batch 1 was refused (token_limit_exceeded: Enqueued token limit reached)" in str(report.error)
    assert (report.documents.added, server.ordinary, len(server.batches)) == (4, [], 3)
    assert report.suspended == ("2 documents wait for a batch that is still to be sent; the next run sends it",)
    server.after, server.ends_at_once = (lambda _, __: None), True
    assert refresh(workshop).documents.added == 2
    check_all_is_there(workshop, server)


@pytest.mark.parametrize("path", ["/v1/files", "/v1/batches"])
def test_batch_that_cannot_be_sent_is_told_and_not_tried_again_by_the_workers_of_the_run(workshop, server, path):
    """The second round, of a document whose batch came, finds in the record that the other batch was not sent."""
    workshop.sections["batch_api"] |= WAITS
    workshop.sections["refresh"] |= {"workers": 1}
    tried = 0

    def gate(method, at):
        nonlocal tried
        tried += (method, at) == ("POST", path)
        return refusal(400, "not now") if (method, at) == ("POST", path) and tried == 1 else None

    server.gate, server.ends_at_once = gate, True
    report = refresh(workshop, OrdersEngine(by_new_workers))
    assert isinstance(report.error, OutageError)
    assert "batch 1 could not be sent: " in str(report.error)
    assert 'batch_api.embedding = "never" goes without' in str(report.error)
    assert (report.documents.added, len(server.batches), server.ordinary, tried) == (4, 2, [], 3)
    assert refresh(workshop).documents.added == 2
    check_all_is_there(workshop, server)


def test_results_that_another_run_takes_meanwhile_are_found_by_workers(workshop, server):
    """A worker began to look for vectors before that run stored any."""
    workshop.sections["batch_api"] |= WAITS

    def end(method, path):
        if method == "GET" and path == "/v1/batches/batch-3":
            server.after = lambda _, __: None
            server.complete()
            server._lock.release()
            refresh(workshop)
            server._lock.acquire()

    server.after = end
    report = run_refresh(Request(workshop.settings), OrdersEngine(), Observer())
    assert report.error is None or report.error.exit_code != 6
    assert len(server.batches) == 3
    check_all_is_there(workshop, server)


def test_results_of_an_earlier_run_are_found_by_workers_that_looked_for_vectors_before(workshop, server):
    """Their shards have the name of the run that sent the batch."""
    refresh(workshop)
    workshop.sections["batch_api"] |= WAITS
    workshop.write("rose.md", "A rose is new.")

    def end(method, path):
        if "A rose is new." in sent(server):
            server.complete()

    server.after = end
    report = run_refresh(Request(workshop.settings), OrdersEngine(), Observer())
    assert (report.error, report.documents.added, len(server.batches), server.ordinary) == (None, 7, 4, [])
    assert server.charged() == Counter([*TEXTS, "A rose is new."])


def test_texts_of_batches_that_stay_with_the_run_are_sent_beside_those_of_workers(workshop, server):
    """Web pages are read by the process that leads the run, which has a text in common with a worker."""
    for path, text in (("0.md", TEXTS[0]), ("1.md", TEXTS[1])):
        workshop.write(path, text)
    workshop.sections["refresh"] |= {"batch_documents": 1, "workers": 1}
    assert refresh(workshop, OrdersEngine(own={0, 1, 2})).error.exit_code == 6
    assert sent(server) == Counter(TEXTS)
    server.complete()
    report = refresh(workshop, OrdersEngine(own={0}))
    assert (report.error, report.documents.added, server.charged()) == (None, 8, Counter(TEXTS))


def test_texts_on_their_way_are_waited_for_by_workers_whatever_the_settings_say_by_then(workshop, server):
    refresh(workshop)
    workshop.sections["batch_api"] = {}
    workshop.write("rose.md", "A rose is new.")
    report = refresh(workshop)
    assert (report.documents.added, report.error.exit_code) == (1, 6)
    assert [body["input"] for body in server.ordinary] == [["A rose is new."]]
    server.complete()
    assert refresh(workshop).documents.added == 6
    assert server.charged() == Counter([*TEXTS, "A rose is new."])


def test_document_that_is_handed_in_does_not_wait_for_a_batch(workshop, server):
    UploadStore(workshop.settings).put("default", "note.md", b"Somebody waits for this.", filename="note.md")
    report = refresh(workshop, engine := OrdersEngine(), targets=("uploads",))
    assert (report.error, report.documents.added, len(engine.orders)) == (None, 1, 1)
    assert (len(server.ordinary), server.batches) == (1, [])
