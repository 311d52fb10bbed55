"""The end of a job is told as it was, whatever happens beside it: to other jobs, to the queue, to the service."""

import pytest

from parquetry.errors import DiskFull, IndexNotWritten, OutageError, SettingsError, StorageError
from parquetry.serving.jobs import execute, indexing, writes
from parquetry.serving.jobs.execute import carry_out
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.lake.lake import Lake
from tests.serving.jobs.desk import hand_in, remove

pytestmark = pytest.mark.slow


@pytest.fixture
def failing(jobs, monkeypatch):
    """Return what has some calls of a method of the queue fail, as on a disk that is full for a moment."""
    monkeypatch.setattr(execute, "RECORD_SECONDS", 0.0)

    def fail(name, times, when=lambda *_: True):
        method, left = getattr(jobs.store, name), [StorageError("the queue of jobs cannot be written")] * times

        def call(*arguments):
            if left and when(*arguments):
                raise left.pop()
            return method(*arguments)

        monkeypatch.setattr(jobs.store, name, call)
        return left

    return fail


def test_published_document_is_told_as_soon_as_the_queue_can_be_written(jobs, failing):
    left = failing("finish", 3)
    job = jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    assert left == []
    assert (jobs.done(job).state, jobs.done(job).result["documents"][0]["status"]) == ("completed", "indexed")
    assert jobs.publishes() == 1


def test_end_that_cannot_be_recorded_before_the_process_stops_is_found_by_the_next_one(jobs, failing):
    left = failing("finish", 1)
    job = jobs.put("oak.md", "Oak is hard.")
    jobs.context.writes.stopping.set()
    with pytest.raises(StorageError):
        execute._record_end(jobs.context, job, execute.JobOutcome({}))
    assert (left, jobs.done(job).state) == ([], "queued")


@pytest.mark.parametrize("stage", ["scanning", "published"])
def test_run_whose_progress_cannot_be_recorded_goes_on(jobs, failing, stage):
    (jobs.docs / "elm.md").write_text("Elm is tough.")
    left = failing("progress", 1, lambda _, progress: stage in ("scanning", progress["stage"]))
    job = jobs.ask("refresh")
    jobs.work()
    assert left == []
    assert (jobs.done(job).state, jobs.done(job).detail, jobs.paths()) == ("completed", None, ["elm.md"])


def test_run_is_cancelled_although_the_queue_could_not_be_read_once(jobs, failing):
    job = jobs.ask("refresh")
    left = failing("cancel_is_asked", 1)
    claimed = jobs.store.claim()
    jobs.store.cancel(job.id)
    with jobs.context.runs.engine() as engine:
        execute._watch(jobs.context, claimed, engine)
        with pytest.raises(execute.Cancelled):
            engine.check()
    assert left == []


@pytest.fixture
def one_by_one(monkeypatch):
    """Return a dictionary: id of a job -> what happens in its publish, once all together were refused."""
    special = {}
    publish = writes.publish_writes

    def publish_alone(context, those, engine):
        if len(those) > 1:
            raise SettingsError("one of them is refused")
        if those[0].id in special:
            special[those[0].id](engine)
        return publish(context, those, engine)

    monkeypatch.setattr(execute, "publish_writes", publish_alone)
    return special


def raising(error):
    def call(*_):
        raise error

    return call


def test_error_of_one_write_is_told_of_that_one_alone(jobs, one_by_one):
    first, second, third = (jobs.put(name, "A text.") for name in ("ash.md", "elm.md", "oak.md"))
    one_by_one[second.id] = raising(OutageError("the store is down"))
    jobs.work()
    assert [jobs.done(job).state for job in (first, second, third)] == ["completed", "failed", "completed"]
    assert (jobs.done(second).reason, jobs.paths()) == ("outage", ["ash.md", "oak.md"])


def test_write_that_is_done_when_the_process_stops_is_told_and_the_others_are_put_back(jobs, one_by_one):
    first, second, third = (jobs.put(name, "A text.") for name in ("ash.md", "elm.md", "oak.md"))
    one_by_one[second.id] = lambda _: jobs.context.writes.stop()
    carry_out(jobs.context, jobs.store.claim())
    assert [jobs.done(job).state for job in (first, second, third)] == ["completed", "queued", "queued"]


def test_job_that_was_not_cancelled_is_put_back_although_another_cannot_be_taken_back(jobs, monkeypatch):
    kept, gone = hand_in(jobs, "elm.md", "Elm is tough."), hand_in(jobs, "oak.md", "Oak is hard.")
    claimed = jobs.store.claim()
    jobs.store.cancel(gone.id)
    jobs.context.writes.stop()
    with monkeypatch.context() as patched:
        patched.setattr(execute, "take_back", raising(DiskFull("no space is left")))
        carry_out(jobs.context, claimed)
    assert [jobs.done(job).state for job in (kept, gone)] == ["queued", "failed"]
    assert jobs.done(gone).reason == "disk-full"
    jobs.restart()
    jobs.work()
    assert (jobs.done(kept).state, jobs.found("tough")) == ("completed", ["elm.md"])


def test_many_jobs_that_fail_for_one_reason_are_one_line(jobs, monkeypatch):
    monkeypatch.setattr(execute, "publish_writes", raising(DiskFull("no space is left")))
    for name in ("elm.md", "oak.md"):
        jobs.put(name, "A text.")
    jobs.work()
    assert jobs.lines == ["2 ingest jobs failed: disk-full: no space is left"]


def test_published_document_is_told_although_nobody_can_say_whether_it_was_cancelled(jobs, failing):
    job = hand_in(jobs, "oak.md", "Oak is hard.")
    claimed = jobs.store.claim()
    failing("cancel_is_asked", 100)
    carry_out(jobs.context, claimed)
    assert (jobs.done(job).state, jobs.paths()) == ("completed", ["oak.md"])


def test_publish_that_cannot_be_recorded_among_the_runs_is_told_as_done(jobs, monkeypatch, caplog):
    (jobs.docs / "elm.md").write_text("Elm is tough.")
    jobs.ask("refresh")
    jobs.work()
    told = "the run could not be recorded; what it published stands"
    monkeypatch.setattr(Lake, "record", raising(StorageError(told)))
    removal = remove(jobs, ("docs", "elm.md"))
    handed = jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    assert [jobs.done(job).state for job in (removal, handed)] == ["completed", "completed"]
    assert jobs.paths() == ["oak.md"]
    restored = jobs.ask("restore", version=1)
    jobs.work()
    assert (jobs.done(restored).state, jobs.paths()) == ("completed", ["elm.md"])
    assert caplog.messages.count(told) == 2


@pytest.fixture
def no_index(monkeypatch):
    """Have the search index not be written after a publish, as on a full disk."""
    monkeypatch.setattr(indexing, "bring_index", raising(IndexNotWritten("no space; the next search builds it")))


def test_publish_without_a_new_index_is_told_as_done(jobs, no_index):
    """As of a refresh: the corpus is changed, and a search builds the index."""
    (jobs.docs / "elm.md").write_text("Elm is tough.")
    jobs.ask("refresh")
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    version = jobs.publishes()
    removal = remove(jobs, ("docs", "elm.md"))
    jobs.work()
    assert (jobs.done(removal).state, jobs.paths()) == ("completed", ["oak.md"])
    undo = jobs.ask("reinstate", "default", removal=removal.id)
    jobs.work()
    assert (jobs.done(undo).state, sorted(jobs.paths())) == ("completed", ["elm.md", "oak.md"])
    remove(jobs, (UPLOADS, "oak.md"))
    jobs.work()
    restored = jobs.ask("restore", version=version)
    jobs.work()
    assert (jobs.done(restored).state, sorted(jobs.paths())) == ("completed", ["elm.md", "oak.md"])
    assert sorted(jobs.found("tough hard")) == ["elm.md", "oak.md"]
