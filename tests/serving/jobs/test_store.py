"""The queue of jobs: every job that was accepted ends, in order, once; whatever ends in between."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from parquetry.errors import SettingsError, StorageError, TransientError
from parquetry.serving.jobs import store as module
from parquetry.serving.jobs.model import KINDS, RUNS, TOGETHER, WRITES
from parquetry.serving.jobs.store import FILE, MOST_ATTEMPTS, JobStore
from parquetry.serving.state.workers import ThisProcess

OWNER = {"user_id": "ada", "org_id": None, "token_id": "t1"}
DEAD = ThisProcess(2**22 + 1, "1.0")


@pytest.fixture
def store(tmp_path):
    with_file = JobStore(tmp_path)
    yield with_file
    with_file.close()


def ingest(store, path="a.md", **owner):
    payload = {"uploads": [{"namespace": "default", "path": path}]}
    return store.submit("ingest", "default", payload, OWNER | owner)


def test_job_is_found_as_it_was_submitted(store, tmp_path):
    job = ingest(store, "größe.md")
    other = JobStore(tmp_path)
    assert other.get(job.id) == job
    assert (job.state, job.kind, job.namespace, job.owner) == ("queued", "ingest", "default", OWNER)
    assert job.payload == {"uploads": [{"namespace": "default", "path": "größe.md"}]}
    assert store.get("job-1") is None
    other.close()


def test_file_is_private(store, tmp_path):
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_end_is_recorded_once(store):
    job = ingest(store)
    store.finish(job.id, {"version": 1})
    assert store.get(job.id).state == "queued", "nobody carries it out yet"
    store.claim()
    store.finish(job.id, {"version": 1})
    store.fail(job.id, "late", "too late")
    done = store.get(job.id)
    assert (done.state, done.result, done.reason) == ("completed", {"version": 1}, None)
    assert done.created_at <= done.started_at <= done.finished_at


def test_secret_in_a_failure_is_masked(store):
    job = ingest(store)
    store.claim()
    store.fail(job.id, "outage", "GET https://ada:sesame@example.com/ failed")
    assert "sesame" not in store.get(job.id).detail


def test_place_with_a_password_is_refused(store):
    with pytest.raises(SettingsError, match="contains a password"):
        store.submit("refresh", None, {"targets": ["https://ada:sesame@example.com/"]}, OWNER)
    assert not store.list()


def test_payload_is_bounded(store):
    with pytest.raises(SettingsError, match="divide it"):
        ingest(store, "a" * module.MOST_PAYLOAD)


def test_queue_is_bounded(store, monkeypatch):
    monkeypatch.setattr(module, "MOST_QUEUED", 2)
    ingest(store), ingest(store)
    with pytest.raises(TransientError, match="2 jobs wait") as refused:
        ingest(store)
    assert refused.value.reason == "queue-full"


@pytest.mark.parametrize("of", [{"org_id": "acme"}, {"org_id": None, "user_id": "ada"}, {"user_id": None}])
def test_one_owner_leaves_room_for_others(store, monkeypatch, of):
    monkeypatch.setattr(module, "MOST_QUEUED_OF_ONE", 2)
    ingest(store, **of), ingest(store, **of)
    for refused in (lambda: ingest(store, **of), lambda: store.check_room(OWNER | of)):
        with pytest.raises(TransientError, match="2 jobs of yours wait") as told:
            refused()
        assert told.value.reason == "queue-full"
    operator = dict.fromkeys(OWNER)
    others = ({"org_id": "other"}, {"user_id": "bob"}, operator, operator, operator)
    assert [ingest(store, **other).state for other in others] == ["queued"] * 5


def test_each_owner_has_a_part_of_a_run_while_others_wait(store, monkeypatch):
    monkeypatch.setattr(module, "MOST_TOGETHER_OF_ONE", 2)
    for _ in range(5):
        ingest(store, org_id="acme")
    other = ingest(store, org_id="other")
    first = store.claim()
    assert [job.owner["org_id"] for job in first] == ["acme", "acme", "other"]
    assert first[-1].id == other.id
    assert [len(store.claim()), len(store.claim())] == [3, 0], "alone, one owner has all of a run"


def test_clock_set_back_changes_no_order(store, monkeypatch):
    jobs = []
    for hours in (3, 2, 1):
        monkeypatch.setattr(module, "now", lambda hours=hours: hours * 3600.0)
        jobs.append(store.submit("refresh", None, {}, OWNER).id)
    assert [job.id for job in store.list()] == jobs[::-1]
    assert [job.id for _ in jobs for job in store.claim()] == jobs


def test_jobs_are_listed_newest_first_by_state_kind_and_owner(store):
    first, second = ingest(store), store.submit("refresh", None, {}, OWNER | {"token_id": "t2"})
    third = store.submit("ingest", "other", {"uploads": []}, {})
    assert [job.id for job in store.list()] == [third.id, second.id, first.id]
    assert [job.id for job in store.list(kind="ingest")] == [third.id, first.id]
    assert [job.id for job in store.list(owner={"token_id": "t2"})] == [second.id]
    assert [job.id for job in store.list(owner={"token_id": None})] == [third.id]
    assert [job.id for job in store.list(namespaces=["default"])] == [first.id]
    assert [job.id for job in store.list(limit=1, offset=1)] == [second.id]
    store.claim()
    assert {job.id for job in store.list(state="running")} == {first.id, third.id}


def test_writes_are_claimed_together_and_runs_alone(store):
    kinds = ("refresh", "ingest", "remove", "reindex", "ingest", "clear", "ingest", "restore")
    for kind in kinds:
        store.submit(kind, "default", {}, OWNER)
    claims = []
    while jobs := store.claim():
        claims.append([job.kind for job in jobs])
    # What came after the clearing is not published before it.
    assert claims == [["refresh"], ["ingest", "remove", "ingest"], ["reindex"], ["clear"], ["ingest"], ["restore"]]


def test_lanes_claim_their_kinds_only(store):
    store.submit("refresh", None, {}, OWNER)
    ingest(store)
    assert store.waits(WRITES)
    assert [job.kind for job in store.claim(WRITES)] == ["ingest"]
    assert not store.waits(WRITES)
    assert [job.kind for job in store.claim(RUNS)] == ["refresh"]


def test_wait_returns_as_soon_as_a_job_ends(store):
    job = ingest(store)
    assert store.wait(job.id, 0.05).state == "queued"

    def carry_out():
        (claimed,) = store.claim()
        store.finish(claimed.id, {"version": 3})

    thread = threading.Timer(0.05, carry_out)
    thread.start()
    assert store.wait(job.id, 60).result == {"version": 3}
    thread.join()
    with pytest.raises(KeyError):
        store.wait("job-1", 0)


def test_cancel_ends_a_waiting_job_and_asks_a_running_one(store):
    waiting, running = ingest(store), store.submit("refresh", None, {}, OWNER)
    assert store.cancel(waiting.id).state == "cancelled"
    store.claim()
    assert store.cancel(running.id).state == "running"
    assert store.cancel_is_asked(running.id)
    assert store.progress(running.id, {"read": 1}), "the run is told to stop"
    store.cancelled(running.id, "stopped")
    assert (store.get(running.id).state, store.get(running.id).reason) == ("cancelled", "cancelled")
    assert store.cancel(running.id).state == "cancelled"


def test_cancel_asks_a_job_that_is_to_be_done_again(store):
    """The process that began it may have published something."""
    job = ingest(store)
    store.claim()
    store.release([job.id])
    assert store.cancel(job.id).state == "queued"
    assert [each.id for each in store.claim()] == [job.id]
    assert store.cancel_is_asked(job.id)


def test_released_job_is_carried_out_again_without_counting(store):
    job = ingest(store)
    store.claim()
    store.release([job.id])
    assert (store.get(job.id).state, store.get(job.id).attempts) == ("queued", 0)


def test_job_of_a_living_process_is_not_recovered(store):
    ingest(store)
    store.claim()
    assert store.recover() == 0


def test_job_of_a_dead_process_is_queued_again_and_fails_after_too_many(store, monkeypatch):
    first, second = ingest(store), ingest(store)
    monkeypatch.setattr(ThisProcess, "get", staticmethod(lambda: DEAD))
    assert [job.id for job in store.claim()] == [first.id, second.id]
    assert store.recover() == 2
    # The second time together, then each alone: one of them may be what ends the process.
    assert len(store.claim()) == 2
    assert store.recover() == 2
    for attempts in range(3, MOST_ATTEMPTS + 1):
        (job,) = store.claim()
        assert (job.id, job.attempts) == (first.id, attempts)
        assert store.recover() == 1
    failed = store.get(first.id)
    assert (failed.state, failed.reason) == ("failed", "interrupted")
    assert "ask for it again" in failed.detail
    assert [job.id for job in store.claim()] == [second.id]


def test_old_jobs_are_forgotten(store, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "KEPT_JOBS", 2)
    monkeypatch.setattr(module, "_PRUNE_SECONDS", 0)
    jobs = [ingest(store, str(number)) for number in range(5)]
    for job in store.claim():
        store.finish(job.id, {})
    waiting = ingest(store)
    store.claim()
    assert [job.id for job in store.list()] == [waiting.id, jobs[4].id, jobs[3].id]
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE jobs SET finished_at = 1 WHERE id = ?", (jobs[4].id,))
    connection.close()
    store.claim()
    assert [job.id for job in store.list()] == [waiting.id, jobs[3].id]


def test_damaged_file_is_told(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database, " * 100)
    with pytest.raises(StorageError, match="queue of jobs"):
        JobStore(tmp_path)


CLAIMER = """
import sys, pathlib
from parquetry.serving.jobs.store import JobStore
store = JobStore(pathlib.Path(sys.argv[1]))
print(flush=True)
sys.stdin.readline()
while jobs := store.claim():
    for job in jobs:
        store.finish(job.id, {})
        print(job.id, flush=True)
"""


def test_two_processes_never_carry_out_one_job(store, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_TOGETHER", 3)
    jobs = [store.submit(("ingest", "refresh")[number % 2], "default", {}, OWNER) for number in range(40)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate()[0].split() for process in processes]
    assert Counter(told[0] + told[1]) == Counter(job.id for job in jobs)
    assert {job.state for job in store.list()} == {"completed"}


SUBMITTER = """
import sys, pathlib
from parquetry.serving.jobs.store import JobStore
store = JobStore(pathlib.Path(sys.argv[1]))
while True:
    print(store.submit("ingest", "default", {"uploads": []}, {}).id, flush=True)
"""


def test_job_that_was_accepted_is_there_after_the_process_is_killed(store, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SUBMITTER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    accepted = [process.stdout.readline().strip() for _ in range(5)]
    os.kill(process.pid, signal.SIGKILL)
    accepted += process.stdout.read().split("\n")[:-1]
    process.wait()
    process.stdout.close()
    found = {job.id for job in store.list(limit=10_000)}
    assert found >= set(accepted)
    # The one after the last that was told may be there, too.
    assert len(found) <= len(accepted) + 1


class Queue(RuleBasedStateMachine):
    """A queue and a list of what it must hold, through claims, ends, deaths and restarts."""

    def __init__(self):
        super().__init__()
        import tempfile
        from pathlib import Path

        self.folder = tempfile.TemporaryDirectory()
        self.store = JobStore(Path(self.folder.name))
        self.states, self.kinds, self.claimed, self.begun = {}, {}, [], set()

    @rule(kind=st.sampled_from(KINDS))
    def submit(self, kind):
        job = self.store.submit(kind, "default", {}, OWNER)
        self.states[job.id], self.kinds[job.id] = "queued", kind

    @rule(kinds=st.sampled_from([WRITES, RUNS, frozenset(KINDS)]))
    def claim(self, kinds):
        waiting = [job for job, state in self.states.items() if state == "queued" and self.kinds[job] in kinds]
        jobs = [job.id for job in self.store.claim(kinds)]
        assert bool(jobs) == bool(waiting)
        assert jobs == sorted(jobs, key=list(self.states).index)
        if jobs:
            assert jobs[0] == waiting[0], "the oldest is never passed over"
            assert len(jobs) == 1 or {self.kinds[job] for job in jobs} <= TOGETHER
        for job in jobs:
            self.states[job] = "running"
        self.claimed += jobs
        self.begun.update(jobs)

    @rule(end=st.sampled_from(["finish", "fail", "release"]), which=st.integers(0, 100))
    def end(self, end, which):
        if not self.claimed:
            return
        job = self.claimed.pop(which % len(self.claimed))
        if end == "finish":
            self.store.finish(job, {"n": 1})
        elif end == "fail":
            self.store.fail(job, "why", "because")
        else:
            self.store.release([job])
        self.states[job] = {"finish": "completed", "fail": "failed", "release": "queued"}[end]

    @rule(which=st.integers(0, 100))
    def cancel(self, which):
        if not self.states:
            return
        job = list(self.states)[which % len(self.states)]
        self.store.cancel(job)
        if self.states[job] == "queued" and job not in self.begun:
            self.states[job] = "cancelled"
        assert self.store.cancel_is_asked(job) or self.states[job] not in ("queued", "running")

    @rule()
    def process_dies_and_the_next_recovers(self):
        self.store._database.write("UPDATE jobs SET pid = 4194305, process = '1.0' WHERE state = 'running'")
        assert self.store.recover() == len(self.claimed)
        for job in self.claimed:
            self.states[job] = "failed" if self.store.get(job).state == "failed" else "queued"
            assert self.states[job] == "queued" or self.store.get(job).attempts >= MOST_ATTEMPTS
        self.claimed = []

    @invariant()
    def nothing_is_lost_or_doubled(self):
        assert {job.id: job.state for job in self.store.list(limit=10_000)} == self.states

    def teardown(self):
        self.store.close()
        self.folder.cleanup()


TestQueue = Queue.TestCase
TestQueue.settings = hypothesis_settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_times_are_those_of_the_clock(store):
    before = time.time()
    job = ingest(store)
    assert before - 1 < job.created_at.timestamp() < time.time() + 1
