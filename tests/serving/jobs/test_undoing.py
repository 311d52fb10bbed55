"""Cancelled uploads leave nothing behind, and a removal can be undone for a while."""

import os
import time

import pytest

from parquetry.model import Access
from parquetry.serving.jobs import writes
from parquetry.serving.jobs.execute import carry_out
from parquetry.serving.jobs.set_aside import FOLDER, UNDO_SECONDS, SetAside
from parquetry.serving.jobs.withdrawing import changes_in_use, withdraw
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.tasks.engine.base import Cancelled
from tests.serving.jobs.desk import hand_in, remove

pytestmark = pytest.mark.slow


def text_of(jobs, name):
    return jobs.uploads.read(jobs.uploads.get("default", name)).decode()


def test_new_upload_that_is_cancelled_while_it_waits_is_gone(jobs):
    job = hand_in(jobs, "oak.md", "Oak.")
    cancelled = jobs.store.cancel(job.id)
    assert withdraw(jobs.store, jobs.uploads, SetAside(jobs.state), cancelled) == [("default", "oak.md")]
    jobs.work()
    assert jobs.uploads.get("default", "oak.md") is None
    assert jobs.done(job).state == "cancelled"


def test_upload_that_replaced_another_gives_way_to_it(jobs):
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    before = jobs.uploads.get("default", "oak.md")
    job = hand_in(jobs, "oak.md", "Oak is soft.")
    withdraw(jobs.store, jobs.uploads, SetAside(jobs.state), jobs.store.cancel(job.id))
    assert text_of(jobs, "oak.md") == "Oak is hard."
    assert jobs.uploads.get("default", "oak.md").etag == before.etag


def test_upload_that_was_handed_in_again_since_is_not_withdrawn(jobs):
    job = hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.store.cancel(job.id)
    hand_in(jobs, "oak.md", "Oak is soft.")
    assert withdraw(jobs.store, jobs.uploads, SetAside(jobs.state), jobs.done(job)) == []
    assert text_of(jobs, "oak.md") == "Oak is soft."


def test_upload_that_another_job_handed_in_without_a_change_stays_for_that_one(jobs):
    """Its answer was that the document had vanished, or that it was indexed."""
    hand_in(jobs, "oak.md", "Oak is soft.")
    jobs.work()
    first, _, third = (hand_in(jobs, "oak.md", "Oak is hard.") for _ in range(3))
    jobs.cancel(first)
    jobs.cancel(third)
    jobs.work()
    assert (jobs.kept("oak.md"), jobs.found("hard")) == ("Oak is hard.", ["oak.md"])


@pytest.mark.parametrize("before", [None, "Oak is soft."])
def test_upload_that_every_job_took_back_that_handed_it_in_is_gone(jobs, before):
    if before is not None:
        hand_in(jobs, "oak.md", before)
        jobs.work()
    for job in [hand_in(jobs, "oak.md", "Oak is hard.") for _ in range(3)]:
        jobs.cancel(job)
    jobs.work()
    assert (jobs.kept("oak.md"), jobs.paths()) == (before, [] if before is None else ["oak.md"])


@pytest.mark.parametrize("both", [False, True])
def test_upload_that_another_job_published_is_not_taken_back(jobs, both):
    first, second = (hand_in(jobs, "oak.md", "Oak is hard.") for _ in range(2))
    claimed = jobs.store.claim()
    for job in claimed if both else claimed[:1]:
        jobs.store.cancel(job.id)
    carry_out(jobs.context, claimed)
    assert (jobs.done(first).state, jobs.done(second).state) == ("cancelled", "completed")
    assert (jobs.kept("oak.md"), jobs.found("hard")) == ("Oak is hard.", ["oak.md"])


def test_upload_that_is_cancelled_while_it_is_read_is_not_published_and_others_are(jobs):
    hand_in(jobs, "ash.md", "Ash is light.")
    jobs.work()
    kept, gone = hand_in(jobs, "elm.md", "Elm is tough."), hand_in(jobs, "oak.md", "Oak is hard.")
    replaced = hand_in(jobs, "ash.md", "Ash is heavy.")
    claimed = jobs.store.claim()
    for job in (gone, replaced):
        jobs.store.cancel(job.id)
    carry_out(jobs.context, claimed)
    assert [jobs.done(job).state for job in (kept, gone, replaced)] == ["completed", "cancelled", "cancelled"]
    assert jobs.paths() == ["ash.md", "elm.md"]
    assert jobs.found("light heavy hard") == ["ash.md"]
    assert text_of(jobs, "ash.md") == "Ash is light."


def test_all_jobs_of_a_run_that_are_cancelled_stop_it(jobs):
    both = [hand_in(jobs, name, "Oak is hard.") for name in ("elm.md", "oak.md")]
    claimed = jobs.store.claim()
    for job in both:
        jobs.store.cancel(job.id)
    carry_out(jobs.context, claimed)
    assert {jobs.done(job).state for job in both} == {"cancelled"}
    assert jobs.paths() == []
    assert list(jobs.uploads.each("default")) == []


@pytest.fixture
def on_publish(monkeypatch):
    """Return a list of calls, of which one is made after each run that published uploads."""
    calls = []
    refresh = writes.refresh_uploads

    def refresh_and_call(context, places, engine):
        report = refresh(context, places, engine)
        if calls:
            calls.pop(0)(engine)
        return report

    monkeypatch.setattr(writes, "refresh_uploads", refresh_and_call)
    return calls


def is_stopped(engine):
    try:
        engine.check()
    except Cancelled:
        return True
    return False


def test_run_that_is_stopped_after_its_publish_leaves_nothing_either(jobs, on_publish):
    hand_in(jobs, "ash.md", "Ash is light.")
    jobs.work()
    every = [hand_in(jobs, name, "Oak is hard.") for name in ("ash.md", "elm.md", "oak.md")]

    def cancel(engine):
        assert jobs.paths() == ["ash.md", "elm.md", "oak.md"]
        for job in every:
            jobs.store.cancel(job.id)
        while not is_stopped(engine):
            time.sleep(0.01)

    on_publish.append(cancel)
    jobs.work()
    assert {(jobs.done(job).state, jobs.done(job).detail) for job in every} == {
        ("cancelled", "it was taken back after it had been read, unless a later job handed in the same")
    }
    assert jobs.paths() == ["ash.md"]
    assert jobs.found("light hard") == ["ash.md"]
    assert text_of(jobs, "ash.md") == "Ash is light."


def test_what_a_process_does_not_take_back_before_it_ends_the_next_one_does(jobs, on_publish):
    kept, gone = hand_in(jobs, "elm.md", "Elm is tough."), hand_in(jobs, "oak.md", "Oak is hard.")

    def cancel_and_stop(_):
        jobs.store.cancel(gone.id)
        jobs.context.writes.stop()

    on_publish.append(cancel_and_stop)
    carry_out(jobs.context, jobs.store.claim())
    assert [jobs.done(job).state for job in (kept, gone)] == ["queued", "queued"]
    assert jobs.paths() == ["elm.md", "oak.md"]
    jobs.restart()
    jobs.work()
    assert [jobs.done(job).state for job in (kept, gone)] == ["completed", "cancelled"]
    assert jobs.paths() == ["elm.md"]


def test_upload_that_cannot_be_published_again_says_so(served, on_publish):
    jobs, service = served
    hand_in(jobs, "oak.md", "Oak is hard.")
    job = hand_in(jobs, "oak.md", "Oak is soft.")

    def cancel_and_break(_):
        jobs.store.cancel(job.id)
        service["up"] = False

    on_publish.append(cancel_and_break)
    jobs.work()
    done = jobs.done(job)
    assert (done.state, done.reason, jobs.found("soft")) == ("failed", "outage", ["oak.md"])
    assert "still published" in done.detail
    assert "embedding service" in done.detail
    service["up"] = True
    again = jobs.ask("reindex", documents=["oak.md"])
    jobs.work()
    assert jobs.done(again).state == "completed"
    assert (jobs.found("soft"), jobs.found("hard")) == ([], ["oak.md"])


def test_removal_is_undone_for_uploads_and_documents_of_sources(jobs):
    (jobs.docs / "elm.md").write_text("Elm is tough.")
    jobs.ask("refresh")
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    before = jobs.uploads.get("default", "oak.md")
    removal = remove(jobs, ("docs", "elm.md"), (UPLOADS, "oak.md"))
    jobs.work()
    assert jobs.paths() == []
    undo = jobs.ask("reinstate", "default", removal=removal.id)
    jobs.work()
    done = jobs.done(undo)
    assert (done.state, done.result["documents"]) == ("completed", 2)
    assert sorted(jobs.paths()) == ["elm.md", "oak.md"]
    assert sorted(jobs.found("tough hard")) == ["elm.md", "oak.md"]
    assert jobs.uploads.get("default", "oak.md").etag == before.etag
    jobs.ask("refresh")
    jobs.work()
    assert sorted(jobs.paths()) == ["elm.md", "oak.md"]


def test_undo_leaves_what_was_handed_in_again(jobs):
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    removal = remove(jobs, (UPLOADS, "oak.md"))
    jobs.work()
    hand_in(jobs, "oak.md", "Oak is soft.")
    jobs.ask("reinstate", "default", removal=removal.id)
    jobs.work()
    assert text_of(jobs, "oak.md") == "Oak is soft."


def test_what_is_set_aside_is_gone_after_its_time_and_with_its_user(jobs):
    aside = SetAside(jobs.state)
    for user in ("ada", "ben"):
        access = Access("individual", user_id=user)
        upload, _ = jobs.uploads.put("default", f"{user}.md", b"Mine.", filename="mine.md", access=access)
        aside.keep(user, upload, b"Mine.")
    aside.forget("ada")
    assert [list(aside.find(user)) == [] for user in ("ada", "ben")] == [True, False]
    assert aside.sweep(set) == 0
    for folder in (jobs.state / FOLDER).iterdir():
        os.utime(folder, (0, 0))
    assert UNDO_SECONDS > 0
    aside.sweep(set)
    assert list((jobs.state / FOLDER).iterdir()) == []


def swept_late(jobs):
    """Sweep as if everything had been set aside long ago."""
    for folder in (jobs.state / FOLDER).iterdir():
        os.utime(folder, (0, 0))
    SetAside(jobs.state).sweep(lambda: changes_in_use(jobs.store))


def test_removal_that_took_long_can_be_undone_for_as_long_as_it_is_said(jobs, monkeypatch):
    """Its time begins at its end; the bytes were set aside at its beginning."""
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    removal = remove(jobs, (UPLOADS, "oak.md"))
    claimed = jobs.store.claim()
    written = writes._written
    with monkeypatch.context() as patched:
        patched.setattr(writes, "_written", lambda *told: (swept_late(jobs), written(*told))[1])
        carry_out(jobs.context, claimed)
    swept_late(jobs)
    undo = jobs.ask("reinstate", "default", removal=removal.id)
    jobs.work()
    assert (jobs.done(undo).state, jobs.kept("oak.md"), jobs.found("hard")) == ("completed", "Oak is hard.", ["oak.md"])


def test_undo_that_was_asked_for_in_time_finds_what_it_brings_back(jobs):
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    removal = remove(jobs, (UPLOADS, "oak.md"))
    jobs.work()
    jobs.ask("reinstate", "default", removal=removal.id)
    jobs.store._database.write("UPDATE jobs SET finished_at = 0 WHERE id = ?", (removal.id,))
    swept_late(jobs)
    jobs.work()
    assert jobs.kept("oak.md") == "Oak is hard."


def test_upload_that_waits_for_long_and_is_cancelled_gives_way_to_what_it_replaced(jobs):
    hand_in(jobs, "oak.md", "Oak is hard.")
    jobs.work()
    job = hand_in(jobs, "oak.md", "Oak is soft.")
    swept_late(jobs)
    jobs.cancel(job)
    assert jobs.kept("oak.md") == "Oak is hard."
    hand_in(jobs, "oak.md", "Oak is soft.")
    jobs.work()
    swept_late(jobs)
    assert list((jobs.state / FOLDER).iterdir()) == []


def test_removal_that_is_not_known_any_more_says_so(jobs):
    undo = jobs.ask("reinstate", "default", removal="job-0")
    jobs.work()
    assert (jobs.done(undo).state, jobs.done(undo).reason) == ("failed", "too-late")
