"""A job that is handed to Prefect ends as its flow run does, whatever happens to service and queue meanwhile."""

import threading
import time

import pytest
from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Completed, Running

from parquetry.errors import StorageError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.jobs import handover
from parquetry.serving.jobs.execute import carry_out
from parquetry.tasks.engine.base import DirectEngine

pytestmark = pytest.mark.slow


@pytest.fixture
def client(prefect_api):
    """Return a client of an API with the deployment, of which this test carries out the flow runs."""
    with get_client(sync_client=True) as client:
        client.create_deployment(client.create_flow_from_name("refresh"), name="on-demand")
        yield client


@pytest.fixture
def handed(jobs, client, monkeypatch):
    """Return a function that hands a job over in a thread; it returns the thread, and the flow run once that runs."""
    monkeypatch.setattr(handover, "LOOK_SECONDS", 0.02)

    def hand_over(job):
        thread = threading.Thread(
            target=carry_out, args=(jobs.context, jobs.store.claim()), kwargs={"by_prefect": True}
        )
        thread.start()
        while not (progress := jobs.done(job).progress or {}).get("flow_run_id"):
            time.sleep(0.02)
        run = client.read_flow_run(progress["flow_run_id"])
        client.set_flow_run_state(run.id, Running(), force=True)
        return thread, run

    return hand_over


def test_flow_run_that_is_ended_after_its_publish_is_not_told_as_unpublished(jobs, client, handed):
    (jobs.docs / "ash.md").write_text("Ash is light.")
    job = jobs.ask("refresh")
    thread, run = handed(job)
    run_refresh(Request(jobs.settings), DirectEngine(), Observer())
    client.set_flow_run_state(run.id, Cancelled(message="Flow run was cancelled successfully."), force=True)
    thread.join()
    assert jobs.paths() == ["ash.md"]
    done = jobs.done(job)
    assert (done.state, done.detail) == (
        "cancelled",
        f"flow run {run.name} was cancelled: Flow run was cancelled successfully.",
    )


def test_job_that_is_cancelled_when_the_service_stops_is_cancelled_by_the_next_one(jobs, client, handed, monkeypatch):
    """Nobody told the flow run, which went on and published beside a job that was 'cancelled'."""
    job = jobs.ask("refresh")
    progress, stopped = jobs.store.progress, threading.Event()

    def cancel_and_stop(id_, told):
        progress(id_, told)
        if not stopped.is_set():
            jobs.store.cancel(job.id)
            jobs.context.runs.stop()
            stopped.set()

    monkeypatch.setattr(jobs.store, "progress", cancel_and_stop)
    thread, run = handed(job)
    thread.join()
    assert stopped.is_set()
    assert client.read_flow_run(run.id).state.name == "Running"
    assert jobs.done(job).state == "queued"
    jobs.restart()
    again = threading.Thread(target=carry_out, args=(jobs.context, jobs.store.claim()), kwargs={"by_prefect": True})
    again.start()
    while client.read_flow_run(run.id).state.name != "Cancelling":
        time.sleep(0.02)
    client.set_flow_run_state(run.id, Cancelled(message="stopped before it published"), force=True)
    again.join()
    assert jobs.done(job).state == "cancelled"
    assert jobs.done(job).detail.endswith("stopped before it published")


def test_queue_that_cannot_be_written_for_a_moment_does_not_part_a_job_from_its_flow_run(
    jobs, client, handed, monkeypatch
):
    (jobs.docs / "ash.md").write_text("Ash is light.")
    run_refresh(Request(jobs.settings), DirectEngine(), Observer())
    job = jobs.ask("refresh")
    progress, failed = jobs.store.progress, threading.Event()

    def fail_once(id_, told):
        if told["state"] == "Running" and not failed.is_set():
            failed.set()
            raise StorageError("the queue of jobs cannot be written")
        return progress(id_, told)

    monkeypatch.setattr(jobs.store, "progress", fail_once)
    thread, run = handed(job)
    assert failed.wait(120)
    client.set_flow_run_state(run.id, Completed(), force=True)
    thread.join()
    assert (jobs.done(job).state, jobs.done(job).result["flow_run_id"]) == ("completed", str(run.id))
