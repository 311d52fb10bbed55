"""Orders and reports between a run and the workers of other processes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from parquetry.embed.base import no_gate
from parquetry.errors import SettingsError, WorkerLost
from parquetry.flows.pipelines.documents import Request, plan_only, scopes_of_request
from parquetry.flows.pipelines.pipeline import open_run
from parquetry.planning.batches import into_batches
from parquetry.settings.sections import override
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.orders import OrderAnswer, Orders
from parquetry.tasks.documents import spooled, worker
from parquetry.tasks.documents.batch import failed_batch
from parquetry.tasks.documents.batch_report import BatchReport
from parquetry.tasks.documents.remote import BatchOrders, carry_out, check_workers
from parquetry.tasks.documents.run import DocumentRun
from tests.workshop import Workshop

DASK = {"run": {"task_runner": "dask"}}


def exchange(workshop: Workshop) -> tuple[str, str, BatchReport, DocumentRun]:
    """Return the order and the answer of the only batch of a refresh, and what its run takes from the answer."""
    settings = override(workshop.settings, DASK)
    request = Request(settings)
    with open_run(DocumentRun, settings, scopes_of_request(request), "refresh") as run:
        (batch,) = into_batches(plan_only(request).changes, lambda _: "", 2**30, 1000)
        remote = BatchOrders(run).of((batch,), 1)
        assert remote is not None
        order = remote.order(batch)
        assert order is not None
        answer = remote.carry_out(order, remote.settings, no_gate)
        return order, answer, remote.receive(answer), run


def test_order_of_a_plan_that_waits_in_a_file_names_its_documents(workshop, monkeypatch):
    """The file is one of this process; a worker gets the documents themselves."""
    monkeypatch.setattr(spooled, "IN_MEMORY", 2)
    for number in range(5):
        workshop.write(f"{number}.md", f"Board {number}.")
    order, _, report, _ = exchange(workshop)
    named = {each["item"]["path"] for each in json.loads(order)["batch"]["changes"]}
    assert named == {f"{number}.md" for number in range(5)}
    assert len(report.rows) == 5


def test_neither_order_nor_report_grows_with_the_text(tmp_path):
    """Only counts and rows come back: a document forty times as long changes some digits of them."""
    sizes = []
    for length in (10, 400):
        workshop = Workshop(tmp_path / str(length))
        for number in range(3):
            text = "".join(f"Board {each} of {number} is planed on both sides.\n\n" for each in range(length))
            workshop.write(f"{number}.md", text)
        order, answer, report, _ = exchange(workshop)
        assert sum(row.characters for row in report.rows) > length * 100
        assert report.work.chunks_written >= 3
        assert "planed" not in order + answer
        sizes.append((len(order), len(answer)))
    # The names of the two folders differ, and numbers have more digits.
    assert sizes[1][0] - sizes[0][0] < 100
    assert sizes[1][1] - sizes[0][1] < 100


def test_shards_of_a_worker_have_a_mark_of_their_own(workshop):
    """A worker that seemed lost may still write while another does its batch again."""
    workshop.write("a.md", "Count the boards.")
    _, _, report, run = exchange(workshop)
    first = {shard.name for shard in report.shards}
    worker.close_idle()
    _, answer, again, _ = exchange(workshop)
    assert all(name.startswith(run.stamp.run_id) for name in first)
    assert first.isdisjoint({shard.name for shard in again.shards})
    assert "Count" not in answer
    assert again.rows[0].chunks == 1
    assert again.work.chunks_reused == 1, "the vector that the lost worker had stored"


def test_batches_of_web_sources_stay_with_the_run(workshop):
    workshop.write("a.md", "Count the boards.")
    settings = override(workshop.settings, DASK)
    request = Request(settings)
    with open_run(DocumentRun, settings, scopes_of_request(request), "refresh") as run:
        (batch,) = into_batches(plan_only(request).changes, lambda _: "", 2**30, 1000)
        scope = run.scopes["default", "docs"]
        web = replace(scope, settings=scope.settings.model_copy(update={"uri": "https://example.org/"}))
        run.scopes = {("default", "docs"): web}
        remote = BatchOrders(run).of((batch,), 1)
        assert remote is not None
        assert remote.order(batch) is None


def test_worker_with_other_settings_of_the_model_stops_the_run(workshop):
    workshop.write("a.md", "Count the boards.")
    settings = override(workshop.settings, DASK)
    request = Request(settings)
    with open_run(DocumentRun, settings, scopes_of_request(request), "refresh") as run:
        (batch,) = into_batches(plan_only(request).changes, lambda _: "", 2**30, 1000)
        remote = BatchOrders(run).of((batch,), 1)
        assert remote is not None
        order = remote.order(batch)
        assert order is not None
        with pytest.raises(SettingsError, match="give every worker the same version"):
            remote.carry_out(order, override(settings, {"chunking": {"size": 300}}), no_gate)


def test_worker_of_a_version_with_other_orders_stops_the_run(workshop, monkeypatch):
    """It would ignore what it does not know, such as that texts are not to be paid for at the full price."""
    workshop.write("a.md", "Count the boards.")
    monkeypatch.setattr(worker, "ORDERS", worker.ORDERS - 1)
    order, _, _, _ = exchange(workshop)
    worker.close_idle()
    monkeypatch.undo()
    with pytest.raises(SettingsError, match=r"orders 1, .* same version of Parquetry"):
        carry_out(order, override(workshop.settings, DASK), no_gate)


def test_worker_without_the_folder_of_a_source_stops_the_run(workshop):
    """Documents that it cannot see would otherwise be taken for vanished ones."""
    workshop.write("a.md", "Count the boards.")
    settings = override(workshop.settings, DASK)
    request = Request(settings)
    with open_run(DocumentRun, settings, scopes_of_request(request), "refresh") as run:
        (batch,) = into_batches(plan_only(request).changes, lambda _: "", 2**30, 1000)
        remote = BatchOrders(run).of((batch,), 1)
        assert remote is not None
        order = remote.order(batch)
        assert order is not None
        workshop.folder.rename(workshop.root / "elsewhere")
        with pytest.raises(SettingsError, match="every worker has to see the folders of the sources"):
            remote.carry_out(order, settings, no_gate)


def test_lost_workers_are_named_as_the_cause_and_not_the_embedding_service(workshop):
    workshop.write("a.md", "Count the boards.")
    request = Request(workshop.settings)
    with open_run(DocumentRun, workshop.settings, scopes_of_request(request), "refresh") as run:
        (batch,) = into_batches(plan_only(request).changes, lambda _: "", 2**30, 1000)
        report = failed_batch(batch, WorkerLost("worker-lost", "flow run batch-0 ended without a report"), run)
    (row,), (lost,) = report.rows, report.lost.values()
    assert row.transient
    assert (row.error or "").startswith("store/worker-lost: flow run batch-0")
    assert lost.service == "workers"


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"batch_api": {"embedding": "always"}}, r"batch_api\.embedding"),
        ({"refresh": {"budget_usd": 1.0}}, r"refresh\.budget_usd"),
    ],
)
def test_what_workers_share_by_conditional_writes_is_refused_without_them(workshop, sections, named):
    """Workers claim texts for batches at services, and allowances of a budget."""
    settings = override(workshop.settings, {**DASK, **sections, "corpus": {"single_writer": True}})
    with pytest.raises(SettingsError, match=named + r'.* run\.task_runner is "dask", and corpus\.single_writer'):
        check_workers(settings)
    check_workers(override(settings, {"run": {"task_runner": "threads"}}))
    check_workers(override(settings, {"corpus": {"single_writer": False}}))


def test_orders_in_the_corpus_are_answered_and_deleted(tmp_path):
    orders = Orders(layout_of(str(tmp_path)))
    name = orders.place('{"batch": 1}')
    assert orders.read(name) == '{"batch": 1}'
    assert orders.answer_to(name) is None
    orders.answer(name, OrderAnswer(stop="no such folder"))
    assert orders.answer_to(name) == OrderAnswer(stop="no such folder")
    old = tmp_path / "orders" / "20200101T000000-0011223344556677.json"
    old.write_text("{}")
    orders.delete_abandoned()
    assert not old.exists()
    assert orders.read(name)
    orders.delete(name)
    assert json.dumps([each.name for each in (tmp_path / "orders").iterdir()]) == "[]"
    with pytest.raises(SettingsError, match="the same corpus"):
        orders.read(name)
