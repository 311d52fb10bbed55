"""Jobs that fail, end or are cancelled in the middle: what is told of them is what the corpus holds."""

import pytest

from parquetry.errors import DiskFull
from parquetry.serving.jobs import writes
from tests.serving.jobs.desk import hand_in

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
