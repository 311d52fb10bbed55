"""The job of an analysis: it tells how far it is, and is cancelled or stopped at any part."""

import threading
import time

import pytest

from parquetry.serving.jobs.execute import carry_out
from parquetry.storage.analysis import analyze as analyzing
from parquetry.storage.analysis.folder import newest_analysis
from parquetry.storage.lake.lake import Lake

SECONDS = 60


@pytest.fixture
def analysis(jobs):
    """Return a function that tells the newest analysis of a corpus of six documents."""
    for number in range(6):
        (jobs.docs / f"{number}.md").write_text(f"# Board {number}\n\nThe board has number {number}.\n")
    jobs.ask("refresh")
    jobs.work()
    return lambda: newest_analysis(Lake(jobs.settings.corpus.root).snapshot().layout, jobs.settings.search)


@pytest.fixture
def working(jobs, analysis, monkeypatch):
    """Yield the job of an analysis that is drawing, for as long as it may, and the thread that works on it."""
    whole = analyzing.project
    begun = threading.Event()

    def endless(vectors, check):
        begun.set()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            check()
            time.sleep(0.02)
        return whole(vectors)

    monkeypatch.setattr(analyzing, "project", endless)
    job = jobs.ask("analyze")
    thread = threading.Thread(target=lambda: carry_out(jobs.context, jobs.store.claim()), daemon=True)
    thread.start()
    assert begun.wait(SECONDS)
    yield job, thread
    monkeypatch.undo()


def test_analysis_that_is_cancelled_ends_and_leaves_nothing(jobs, analysis, working):
    job, thread = working
    assert jobs.done(job).progress == {"stage": "drawing"}
    jobs.store.cancel(job.id)
    thread.join(SECONDS)
    assert (jobs.done(job).state, analysis()) == ("cancelled", None)


def test_analysis_of_a_service_that_stops_is_done_again(jobs, analysis, working):
    job, thread = working
    jobs.context.runs.stop()
    thread.join(SECONDS)
    assert (jobs.done(job).state, analysis()) == ("queued", None)


def test_analysis_is_done(jobs, analysis):
    job = jobs.ask("analyze")
    jobs.work()
    done = jobs.done(job)
    assert (done.state, done.result["placed"]) == ("completed", 6)
    assert analysis().version == done.result["version"]
