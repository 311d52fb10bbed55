"""The process that carries out jobs, killed and stopped at any moment: nothing is lost, doubled or half published."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from parquetry.serving.jobs.store import JobStore
from parquetry.serving.jobs.working import LOCK
from parquetry.serving.state.environment import VARIABLE, exported
from parquetry.serving.state.workers import WorkerRecord

pytestmark = pytest.mark.slow
SETTINGS = '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'
PATIENCE = 240
"""maximum seconds for any step on a busy machine"""


class Process:
    """A running process, and the lines that it prints."""

    def __init__(self, desk, given=(), **more):
        config = desk.docs.parent / "parquetry.toml"
        if not config.exists():
            config.write_text(
                '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'
            )
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parquetry.serving.jobs.process"],
            env={**environment, "HOME": str(desk.docs.parent), VARIABLE: exported(config, {}), **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.tell(json.dumps(dict(given)))

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.end()

    def stop(self):
        self.process.stdin.close()
        return self.end()

    def end(self):
        code = self.process.wait(PATIENCE)
        self._reader.join()
        self.process.stdout.close()
        self.process.stdin.close()
        return code

    def until(self, found):
        deadline = time.monotonic() + PATIENCE
        while not (result := found()):
            assert self.process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.02)
        return result


@pytest.fixture
def start(jobs):
    running = []

    def started(**given):
        running.append(Process(jobs, given))
        return running[-1]

    yield started
    for each in running:
        if each.process.poll() is None:
            each.kill()


def test_fifty_writes_at_once_take_few_publishes(jobs, start):
    process = start()
    first = jobs.put("first.md", "First.")
    assert jobs.store.wait(first.id, PATIENCE).state == "completed"
    before = jobs.publishes()
    many = []
    threads = [
        threading.Thread(target=lambda n=number: many.append(jobs.put(f"{n}.md", f"Board {n}.")))
        for number in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {jobs.store.wait(job.id, PATIENCE).state for job in many} == {"completed"}
    assert jobs.publishes() - before <= 10
    assert len(jobs.paths()) == 51
    assert process.stop() == 0


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 0.6, 1.0, 2.0])
def test_killed_process_is_followed_by_one_that_does_all_again(jobs, start, seconds):
    process = start()
    first = jobs.put("first.md", "First.")
    assert jobs.store.wait(first.id, PATIENCE).state == "completed"
    gone = jobs.remove("first.md")
    many = [jobs.put(f"{number}.md", f"Board {number}.") for number in range(5)]
    process.until(lambda: jobs.done(many[0]).state != "queued")
    time.sleep(seconds)
    process.kill()
    process = start()
    for job in (*many, gone):
        assert jobs.store.wait(job.id, PATIENCE).state == "completed", jobs.done(job)
    assert [each["chunks"] for each in jobs.done(gone).result["removed"]] == [1]
    assert sorted(jobs.paths()) == [f"{number}.md" for number in range(5)]
    assert process.stop() == 0
    assert {job.state for job in jobs.store.list()} == {"completed"}


def test_refresh_that_is_killed_is_done_again(jobs, start):
    for number in range(30):
        (jobs.docs / f"{number}.md").write_text(f"# Board {number}\n\nThe board has number {number}.\n")
    process = start()
    job = jobs.ask("refresh")
    process.until(lambda: jobs.done(job).progress)
    process.kill()
    process = start()
    done = jobs.store.wait(job.id, PATIENCE)
    assert done.state == "completed"
    assert done.attempts == 2
    assert len(jobs.paths()) == 30
    assert process.stop() == 0


def test_order_to_stop_leaves_jobs_that_the_next_process_does(jobs, start):
    for number in range(200):
        (jobs.docs / f"{number}.md").write_text(f"# Board {number}\n\n" + f"The board has number {number}. " * 2000)
    process = start()
    job = jobs.ask("refresh")
    process.until(lambda: (jobs.done(job).progress or {}).get("stage") == "documents")
    assert process.stop() == 0
    assert jobs.done(job).state in ("queued", "completed")
    assert jobs.done(job).state == "completed" or jobs.done(job).attempts == 0
    process = start()
    assert jobs.store.wait(job.id, PATIENCE).state == "completed"
    assert len(jobs.paths()) == 200
    process.stop()


def test_small_write_does_not_wait_for_a_long_run_and_a_drained_process_still_does_it(jobs, start):
    for number in range(300):
        (jobs.docs / f"{number}.md").write_text(f"# Board {number}\n\n" + f"The board has number {number}. " * 3000)
    process = start()
    long = jobs.ask("refresh")
    process.until(lambda: (jobs.done(long).progress or {}).get("stage") == "documents")
    short = jobs.put("oak.md", "Oak is hard.")
    assert jobs.store.wait(short.id, PATIENCE).state == "completed"
    process.tell("drain")
    process.until(lambda: jobs.done(long).state != "running")
    after = jobs.put("ash.md", "Ash is light.")
    assert jobs.store.wait(after.id, PATIENCE).state == "completed"
    assert process.stop() == 0


def test_cancelled_run_stops_and_publishes_nothing(jobs, start):
    for number in range(300):
        (jobs.docs / f"{number}.md").write_text(f"# Board {number}\n\n" + f"The board has number {number}. " * 3000)
    process = start()
    job = jobs.ask("refresh")
    process.until(lambda: (jobs.done(job).progress or {}).get("stage") == "documents")
    jobs.store.cancel(job.id)
    done = jobs.store.wait(job.id, PATIENCE)
    assert (done.state, done.reason) == ("cancelled", "cancelled")
    assert jobs.paths() == []
    assert process.stop() == 0


def test_second_process_waits_until_the_first_ends(jobs, start):
    first = start()
    job = jobs.put("oak.md", "Oak is hard.")
    assert jobs.store.wait(job.id, PATIENCE).state == "completed"
    second = start()
    second.until(lambda: any("another service" in line for line in second.lines))
    first.kill()
    job = jobs.put("ash.md", "Ash is light.")
    assert jobs.store.wait(job.id, PATIENCE).state == "completed"
    assert second.stop() == 0
    assert (jobs.state / LOCK).exists()


def test_job_is_done_only_when_every_process_that_answers_follows(jobs, start):
    record = WorkerRecord(jobs.state)
    record.announce(0)
    process = start()
    job = jobs.put("oak.md", "Oak is hard.")
    process.until(jobs.paths)
    assert jobs.store.wait(job.id, 1).state == "running"
    record.announce(jobs.publishes())
    assert jobs.store.wait(job.id, PATIENCE).state == "completed"
    assert process.stop() == 0


def test_process_ends_with_its_starter(jobs, start):
    process = start()
    job = jobs.put("oak.md", "Oak is hard.")
    assert jobs.store.wait(job.id, PATIENCE).state == "completed"
    process.process.send_signal(signal.SIGTERM)
    assert process.end() == 0
    other = JobStore(jobs.state)
    assert other.recover() == 0
    other.close()
