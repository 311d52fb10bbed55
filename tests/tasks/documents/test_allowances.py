"""A budget holds for workers of other processes: by allowances, through orders and reports as they cross the wire."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from parquetry.embed.base import no_gate
from parquetry.errors import SettingsError, WorkerLost
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport
from parquetry.settings.sections import override
from parquetry.tasks.documents.remote import carry_out
from parquetry.tasks.engine import retries
from tests.flows.orchestration.corpora import content_of
from tests.flows.pipelines.test_images import CRANE, picture
from tests.servers.chat_server import ChatServer, said
from tests.servers.embedding_server import Answer, EmbeddingServer, Reply, counting, refusal
from tests.servers.embedding_server import Request as Asked
from tests.tasks.documents.orders_engine import Execute, OrdersEngine, another_process
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

PRICE = 1000.0
"""US dollars per million tokens"""
EACH = 89 * PRICE / 1e6
"""US dollars for the text of a note"""


class Service(EmbeddingServer):
    """A service that charges for each byte."""

    def __init__(self) -> None:
        super().__init__(lambda request: self.answer(request))
        self.answer: Answer = counting


def paid(server: Service) -> float:
    """Return what the service charged, in US dollars."""
    return sum(len(text.encode()) for request in server.requests for text in request.inputs) * PRICE / 1e6


@pytest.fixture
def server():
    with Service() as server:
        yield server


@pytest.fixture
def workshop(workshop: Workshop, server) -> Workshop:
    workshop.sections["corpus"] = {"embedder": "openai:m"}
    workshop.sections["embedding"] = {
        "base_url": server.url,
        "api_key": "x",
        "dimension": 8,
        "attempts": 1,
        "price_per_million_tokens": PRICE,
    }
    workshop.sections["run"] = {"task_runner": "dask"}
    return workshop


def write_notes(workshop: Workshop, count: int) -> None:
    for number in range(count):
        workshop.write(f"{number:02}.md", f"Note {number:02}: " + f"{number:02}" * 40)


def refresh(
    workshop: Workshop, budget: float | None, workers: int, engine: OrdersEngine | None = None, documents: int = 2
) -> RunReport:
    """Refresh with a budget in US dollars, and so many documents in each batch."""
    within = {} if budget is None else {"budget_usd": budget}
    workshop.sections["refresh"] = {"batch_documents": documents, "workers": workers, "attempts": 1, **within}
    return run_refresh(Request(workshop.settings), engine or OrdersEngine(), Observer())


def marks(workshop: Workshop) -> list[str]:
    folder = workshop.root / "corpus" / "orders"
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_budget_is_used_up_and_never_passed_and_the_next_run_buys_only_the_rest(workshop, server, workers):
    write_notes(workshop, 12)
    report = refresh(workshop, 6.5 * EACH, workers)
    assert 6 * EACH - 1e-9 <= paid(server) <= 6.5 * EACH, "a text more would not have been too much"
    assert report.documents.added == len(workshop.rows()) == 6
    (refusal,) = report.refused
    told = f"the budget of ${6.5 * EACH:g} (refresh.budget_usd) is reached, ${paid(server):.4f} spent: 6 documents stay"
    assert refusal.startswith(told)
    assert report.work.cost_usd == pytest.approx(paid(server), abs=1e-6)
    assert marks(workshop) == []
    report = refresh(workshop, 20 * EACH, workers)
    assert (report.documents.added, report.refused, len(workshop.rows())) == (6, (), 12)
    texts = [text for request in server.requests for text in request.inputs]
    assert len(texts) == len(set(texts)) == 12, "nothing is paid for twice"


@pytest.mark.parametrize("workers", [2, 5])
def test_documents_beyond_an_allowance_are_ordered_again_while_the_budget_has_room(workshop, server, workers):
    """Each batch gets a part of the budget, and some need more: the run is out of budget only if the budget is."""
    write_notes(workshop, 12)
    engine = OrdersEngine()
    report = refresh(workshop, 12.2 * EACH, workers, engine)
    assert (report.documents.added, report.refused) == (12, ())
    assert max(engine.executed) >= 6, "no document was held back"
    assert paid(server) == pytest.approx(12 * EACH)


def test_document_that_is_bought_in_two_batches_has_each_chunk_once(workshop, server, tmp_path):
    """The first batch stores the chunks that it bought, and the second one the whole document."""
    words = ("oak", "elm", "ash", "fir", "yew", "box")
    for name, count in (("a", 6), ("b", 2), ("c", 2), ("d", 2)):
        workshop.write(f"{name}.md", "\n\n".join(f"{name} {word} " * 100 for word in words[:count]))
    workshop.sections["embedding"]["batch_inputs"] = 1
    engine = OrdersEngine()
    whole = Workshop(tmp_path / "whole")
    whole.sections = {**workshop.sections, "run": {}}
    whole.folder = workshop.folder
    whole.refresh()
    alone = paid(server)
    report = refresh(workshop, 1.02 * alone, 4, engine, documents=1)
    assert report.documents.added == 4
    assert max(engine.executed) >= 4, "no document was held back"
    assert paid(server) == pytest.approx(2 * alone)
    assert content_of(workshop.settings.corpus.root) == content_of(whole.settings.corpus.root)


def test_batches_are_not_read_once_the_budget_is_spent(workshop, server):
    write_notes(workshop, 40)
    engine = OrdersEngine()
    report = refresh(workshop, 12.2 * EACH, 2, engine)
    assert report.documents.added == 12
    assert len(engine.executed) <= 10, "of 20 batches"


def second_meanwhile(server: Service) -> Execute:
    """Return what executes the first order twice at the same time: its second execution while the first one pays."""
    asked, answered = threading.Event(), threading.Event()

    def waiting(request: Asked) -> Reply:
        if not asked.is_set():
            asked.set()
            assert answered.wait(60)
        return counting(request)

    def execute(execution, number):
        if number:
            return execution()
        server.answer = waiting
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(execution)
            assert asked.wait(60)
            with another_process():
                second = execution()
            answered.set()
            assert json.loads(first.result())["is_claimed"]
        return second

    return execute


def test_of_two_executions_of_an_order_one_pays_and_what_it_may_have_cost_counts_as_spent(workshop, server):
    """Dask and Ray repeat an order whose worker seems lost, and the first execution may go on."""
    write_notes(workshop, 4)
    engine = OrdersEngine(second_meanwhile(server))
    report = refresh(workshop, 20 * EACH, 2, engine)
    assert report.documents.added == 4
    assert engine.executed[:2] == [0, 0]
    assert max(engine.executed) == 2, "the documents of the lost worker were ordered again"
    assert paid(server) <= 6 * EACH + 1e-9, "two documents were paid for by the lost worker"
    (warning,) = report.warnings
    assert f"up to ${10 * EACH:.4f} that they may have spent is in no report" in warning
    assert marks(workshop) == []


def test_budget_that_lost_workers_may_have_spent_is_not_spent_again(workshop, server):
    write_notes(workshop, 4)
    report = refresh(workshop, 4.2 * EACH, 1, OrdersEngine(second_meanwhile(server)))
    assert paid(server) <= 4.2 * EACH
    (refusal,) = report.refused
    assert f"$0.0000 spent, up to ${4.2 * EACH:.4f} more by lost workers: 4 documents stay as before" in refusal


def test_worker_that_is_lost_with_every_report_costs_its_allowances_and_no_more(workshop, server):
    write_notes(workshop, 8)

    def lost(execution, number):
        execution()
        raise WorkerLost("worker-lost", "gone")

    report = refresh(workshop, 6 * EACH, 2, OrdersEngine(lost))
    assert 0 < paid(server) <= 6 * EACH
    assert report.documents.added == 0
    assert report.work.cost_usd == 0
    assert "counts as spent" in str(report.warnings)


def test_execution_after_the_end_of_its_allowance_pays_nothing(workshop, server):
    """Its worker was cut off before it began to embed, and the run is over."""
    write_notes(workshop, 2)
    engine = OrdersEngine(lambda execution, _: "{}")
    with pytest.raises(ValueError, match="RemoteReport"):
        refresh(workshop, 20 * EACH, 1, engine)
    assert marks(workshop) == []
    answer = json.loads(carry_out(engine.orders[0], workshop.settings, no_gate))
    assert len(answer["report"]["held"]) == 2
    assert (server.requests, marks(workshop), answer["is_claimed"]) == ([], [], False)


def test_failed_batch_reports_what_it_spent_and_gives_back_the_rest(workshop, server, monkeypatch):
    """An outage is not an expense: the documents of other batches are bought."""
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    write_notes(workshop, 8)
    workshop.sections["embedding"]["batch_inputs"] = 1

    def down_for_one(request: Asked) -> Reply:
        return refusal(500, "down") if request.inputs[0].startswith("Note 00") else counting(request)

    server.answer = down_for_one
    report = refresh(workshop, 20 * EACH, 1)
    assert (report.documents.added, report.documents.failed, report.refused) == (6, 2, ())
    assert report.work.cost_usd == pytest.approx(7 * EACH), "the other document of the batch was bought, once"
    assert "counts as spent" not in str(report.warnings)


def test_worker_with_other_prices_stops_the_run(workshop, server):
    """Workers of a pool read settings of their own; without the price, they would measure nothing."""
    write_notes(workshop, 2)
    engine = OrdersEngine()
    refresh(workshop, 20 * EACH, 1, engine)
    cheaper = override(workshop.settings, {"embedding": {"price_per_million_tokens": 1.0}})
    with pytest.raises(SettingsError, match=r"a worker \(\$1 per million tokens embedded\) differ .* \(\$1000 per"):
        carry_out(engine.orders[0], cheaper, no_gate)


def test_free_model_is_not_hindered_by_a_budget_of_nothing(workshop, server):
    write_notes(workshop, 6)
    workshop.sections["embedding"]["price_per_million_tokens"] = 0
    engine = OrdersEngine()
    report = refresh(workshop, 0, 3, engine)
    assert (report.documents.added, report.refused, engine.executed) == (6, (), [0, 1, 2])
    assert not (workshop.root / "corpus" / "orders").exists(), "no allowance is needed"


def test_descriptions_of_images_are_paid_from_allowances(workshop, server):
    """A described image has no text whose cost is known before."""
    for number in range(6):
        workshop.write(f"{number}.png", picture() + bytes([number]))
    workshop.sections["extraction"] = {"workers": 1, "ocr": False, "include_image_descriptions": True}
    workshop.sections["embedding"]["price_per_million_tokens"] = 0
    with ChatServer(lambda _: said(CRANE)) as chat:
        prices = {"price_per_million_input_tokens": 1000, "price_per_million_output_tokens": 10_000}
        workshop.sections["llm"] = {"model": "m", "base_url": chat.url, "max_reply_tokens": 16, **prices}
        cost = 120 / 1000 + 9 / 100
        budget = 3 * cost + 1.5
        report = refresh(workshop, budget, 2)
        assert len(chat.bodies) * cost <= budget
        assert report.work.cost_usd == pytest.approx(len(chat.bodies) * cost)
        assert 0 < report.documents.added == len(chat.bodies) < 6
    (refusal,) = report.refused
    assert f"{6 - report.documents.added} documents stay as before" in refusal


def test_text_of_a_described_image_is_bought_before_the_others(workshop, server):
    """Held back, it would be described and paid for again."""
    workshop.write("crane.png", picture())
    for number in range(8):
        workshop.write(f"{number}.md", f"Note {number}: " + f"{number}" * 291)
    workshop.sections["extraction"] = {"workers": 1, "ocr": False, "include_image_descriptions": True}
    workshop.sections["embedding"]["batch_inputs"] = 1
    with ChatServer([said(CRANE)]) as chat:
        prices = {"price_per_million_input_tokens": 1000, "price_per_million_output_tokens": 10_000}
        workshop.sections["llm"] = {"model": "m", "base_url": chat.url, "max_reply_tokens": 16, **prices}
        report = refresh(workshop, 2.0, 1, documents=9)
        assert workshop.rows()["crane.png"].status == "indexed"
        assert (report.documents.added, len(report.refused)) == (6, 1)
        assert (refresh(workshop, 2.0, 1, documents=9).refused, len(workshop.rows())) == ((), 9)


def test_no_order_of_a_run_without_a_budget_has_an_allowance(workshop, server):
    write_notes(workshop, 4)
    engine = OrdersEngine()
    assert refresh(workshop, None, 2, engine).documents.added == 4
    assert [json.loads(order)["allowance"] for order in engine.orders] == [None, None]
    assert not Path(workshop.root / "corpus" / "orders").exists()
