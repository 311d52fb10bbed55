"""Jobs that fail, end or are cancelled in the middle: their ends say what the corpus holds."""

import subprocess
import sys

import psutil
import pytest

from parquetry.errors import DiskFull
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.serving.jobs import writes
from parquetry.serving.jobs.execute import carry_out
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.working import tend
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.http_app import running_app
from tests.serving.jobs.desk import hand_in, remove
from tests.serving.web.browsing import Visitor

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The process ends here."""


def raising(error):
    def call(*_):
        raise error

    return call


def end_of_process(jobs, job):
    """Have the job be that of a process that is gone, and queue it again."""
    values = "state = 'running', result = NULL, pid = 4194305, process = '1.0'"
    jobs.store._database.write(f"UPDATE jobs SET {values} WHERE id = ?", (job.id,))
    assert jobs.store.recover() == 1


@pytest.fixture
def failing_runs(monkeypatch):
    """Return a list of errors: each ends one run over uploads before it has done anything."""
    errors = []
    refresh = writes.refresh_uploads

    def refresh_or_fail(context, places, engine):
        if errors:
            raise errors.pop(0)
        return refresh(context, places, engine)

    monkeypatch.setattr(writes, "refresh_uploads", refresh_or_fail)
    return errors


def clear_all(jobs):
    return jobs.ask("clear", None, namespace=None, shared=None, user_id=None, org_id=None)


def test_clear_after_one_that_failed_removes_what_that_left_published(jobs, failing_runs):
    """The bytes went first: nothing but the corpus knows of these documents any more."""
    jobs.put("oak.md", "Oak is hard.")
    jobs.put("elm.md", "Elm is tough.", namespace="other")
    jobs.work()
    failing_runs.append(DiskFull("no space is left"))
    first = clear_all(jobs)
    jobs.work()
    assert (jobs.done(first).state, jobs.done(first).reason) == ("failed", "disk-full")
    assert (jobs.paths(), jobs.paths("other")) == (["oak.md"], ["elm.md"])
    again = clear_all(jobs)
    jobs.work()
    assert (jobs.done(again).state, jobs.done(again).result["removed"]) == ("completed", 2)
    assert (jobs.paths(), jobs.paths("other")) == ([], [])


def test_clear_of_a_process_that_ended_is_done_by_the_next_one(jobs, failing_runs):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    failing_runs.append(Killed())
    job = clear_all(jobs)
    with pytest.raises(Killed):
        jobs.work()
    assert list(jobs.uploads.each("default")) == []
    end_of_process(jobs, job)
    jobs.work()
    assert (jobs.done(job).state, jobs.done(job).result["removed"]) == ("completed", 1)
    assert (jobs.paths(), jobs.found("hard")) == ([], [])


def test_clear_that_is_done_again_after_its_publish_tells_the_same(jobs, monkeypatch):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    job = clear_all(jobs)
    with monkeypatch.context() as patched:
        patched.setattr(writes, "_written", raising(Killed()))
        with pytest.raises(Killed):
            jobs.work()
    end_of_process(jobs, job)
    jobs.put("elm.md", "Elm is tough.")
    jobs.work()
    assert jobs.done(job).result["removed"] == 1
    assert jobs.paths() == ["elm.md"]


@pytest.mark.parametrize("published", [True, False])
def test_upload_that_is_cancelled_while_it_waits_to_be_done_again_is_not_left_published(jobs, monkeypatch, published):
    hand_in(jobs, "ash.md", "Ash is light.")
    jobs.work()
    both = [hand_in(jobs, "ash.md", "Ash is heavy."), hand_in(jobs, "oak.md", "Oak is hard.")]
    with monkeypatch.context() as patched:
        patched.setattr(writes, "_written" if published else "refresh_uploads", raising(Killed()))
        with pytest.raises(Killed):
            jobs.work()
    assert sorted(jobs.found("light heavy hard")) == (["ash.md", "oak.md"] if published else ["ash.md"])
    for job in both:
        end_of_process(jobs, job)
        jobs.cancel(job)
    jobs.work()
    assert {jobs.done(job).state for job in both} == {"cancelled"}
    assert (jobs.paths(), jobs.found("light"), jobs.found("heavy hard")) == (["ash.md"], ["ash.md"], [])


ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("before", ["Ash is light.", None])
def test_uploads_over_each_other_that_are_all_cancelled_bring_none_of_them_back(jobs, order, before):
    if before is not None:
        hand_in(jobs, "ash.md", before)
        jobs.work()
    every = [hand_in(jobs, "ash.md", text) for text in ("Ash is heavy.", "Ash is hard.", "Ash is soft.")]
    for number in order:
        jobs.cancel(every[number])
    assert {jobs.done(job).state for job in every} == {"cancelled"}
    assert jobs.kept("ash.md") == before
    jobs.work()
    assert jobs.paths() == ([] if before is None else ["ash.md"])


@pytest.mark.parametrize("order", ORDERS)
def test_the_one_of_them_that_is_not_cancelled_stays(jobs, order):
    texts = ("Ash is heavy.", "Ash is hard.", "Ash is soft.")
    every = [hand_in(jobs, "ash.md", text) for text in texts]
    for number in order[:2]:
        jobs.cancel(every[number])
    assert jobs.kept("ash.md") == texts[order[2]]
    jobs.work()
    assert jobs.done(every[order[2]]).state == "completed"


@pytest.mark.parametrize("cancelled", [0, 1])
def test_uploads_over_each_other_in_one_run_leave_what_was_not_cancelled(jobs, cancelled):
    every = [hand_in(jobs, "ash.md", text) for text in ("Ash is heavy.", "Ash is hard.", "Ash is soft.")]
    claimed = jobs.store.claim()
    for job in every[cancelled:]:
        jobs.cancel(job)
    carry_out(jobs.context, claimed)
    assert {jobs.done(job).state for job in every[cancelled:]} == {"cancelled"}
    assert jobs.kept("ash.md") == (None, "Ash is heavy.")[cancelled]
    assert jobs.paths() == [[], ["ash.md"]][cancelled]
    if cancelled:
        assert (jobs.found("heavy"), jobs.found("hard soft")) == (["ash.md"], [])


@pytest.mark.parametrize("clearing", [False, True])
@pytest.mark.parametrize("when", ["before the removal", "in its run", "after it"])
def test_what_was_to_be_removed_does_not_come_back_with_a_cancelled_upload(jobs, when, clearing):
    hand_in(jobs, "ash.md", "Ash is light.")
    jobs.work()
    gone = clear_all(jobs) if clearing else remove(jobs, (UPLOADS, "ash.md"))
    again = hand_in(jobs, "ash.md", "Ash is heavy.")
    if when == "before the removal":
        jobs.cancel(again)
    claimed = jobs.store.claim()
    if when == "in its run":
        jobs.cancel(again)
    carry_out(jobs.context, claimed)
    if when == "after it":
        jobs.cancel(again)
    jobs.work()
    assert jobs.done(gone).state == "completed"
    together = when == "after it" and not clearing
    assert jobs.done(again).state == ("completed" if together else "cancelled")
    assert jobs.kept("ash.md") == ("Ash is heavy." if together else None)
    assert jobs.found("light") == []
    assert jobs.paths() == (["ash.md"] if together else [])
    if not clearing:
        jobs.ask("reinstate", "default", removal=gone.id)
        jobs.work()
        assert jobs.kept("ash.md") == ("Ash is heavy." if together else "Ash is light.")


def test_erasure_of_a_user_does_not_change_what_a_cancelled_upload_brings_back(jobs):
    hand_in(jobs, "ash.md", "Ash is light.")
    jobs.work()
    clear_all(jobs)
    again = hand_in(jobs, "ash.md", "Ash is heavy.")
    carry_out(jobs.context, jobs.store.claim())
    assert jobs.done(again).state == "queued"
    SetAside(jobs.state).forget("ada")
    jobs.cancel(again)
    jobs.work()
    assert jobs.kept("ash.md") is None


def test_upload_that_another_run_published_while_its_job_waits_is_taken_back(jobs):
    """As by `parquetry refresh`, which is for uploads, too."""
    hand_in(jobs, "ash.md", "Ash is light.")
    jobs.work()
    every = [hand_in(jobs, "ash.md", "Ash is heavy."), hand_in(jobs, "oak.md", "Oak is hard.")]
    run_refresh(Request(jobs.settings, (UPLOADS,)), DirectEngine(), Observer())
    assert sorted(jobs.found("light heavy hard")) == ["ash.md", "oak.md"]
    for job in every:
        jobs.cancel(job)
    jobs.work()
    assert {jobs.done(job).state for job in every} == {"cancelled"}
    assert (jobs.paths(), jobs.kept("ash.md"), jobs.found("heavy hard")) == (["ash.md"], "Ash is light.", [])


@pytest.mark.parametrize("page", ["/add", "/runs"])
def test_upload_is_taken_back_on_whichever_page_its_job_is_cancelled(jobs, page):
    job = hand_in(jobs, "oak.md", "Oak is hard.")
    with running_app(jobs.settings) as app:
        visitor = Visitor(app.url)
        shown = visitor.open(f"{page}/jobs/{job.id}")
        visitor.send(shown.form(f"{page}/jobs/{job.id}/cancel"))
    assert (jobs.done(job).state, jobs.kept("oak.md")) == ("cancelled", None)


def test_job_of_a_process_that_ends_after_the_next_one_began_is_taken_up(jobs):
    """Its lock is free before it is gone: the next process finds the job in work by a process that lives."""
    job = jobs.put("oak.md", "Oak is hard.")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = psutil.Process(process.pid).create_time()
        jobs.store.claim()
        jobs.store._database.write("UPDATE jobs SET pid = ?, process = ?", (process.pid, repr(started)))
        tend(jobs.context)
        assert jobs.done(job).state == "running"
    tend(jobs.context)
    assert jobs.done(job).state == "queued"
    jobs.work()
    assert (jobs.done(job).state, jobs.paths()) == ("completed", ["oak.md"])
