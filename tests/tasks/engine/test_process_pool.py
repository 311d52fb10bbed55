"""A process of a pool that dies or stops costs its document alone."""

import multiprocessing
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress

import psutil
import pytest

from parquetry.errors import BrokenDocument
from parquetry.tasks.engine import pooled_process
from parquetry.tasks.engine.fork_server import reading_context
from parquetry.tasks.engine.pooled_process import PooledProcess, ProcessDied
from parquetry.tasks.engine.process_pool import ProcessPool
from tests.tasks.engine.conftest import TEXT


@pytest.mark.parametrize("others", [0, 1])
def test_process_that_dies_costs_its_document_alone(two_processes, others):
    waiting = [two_processes._schedule(time.sleep, 3) for _ in range(others)]
    for other in waiting:
        while not other.running():
            time.sleep(0.01)
    with pytest.raises(BrokenDocument, match="its extraction process died"):
        two_processes.result(two_processes._schedule(os._exit, 3))
    assert two_processes.result(two_processes.prepare(TEXT)).chunks
    assert [two_processes.result(other) for other in waiting] == [None] * others


def test_process_that_dies_is_told_while_others_have_no_rest(two_processes):
    two_processes.result(two_processes.prepare(TEXT))
    dying = two_processes._schedule(os._exit, 3)
    waiting = deque(two_processes._schedule(abs, -3) for _ in range(20))
    for _ in range(3000):
        two_processes.result(waiting.popleft())
        waiting.append(two_processes._schedule(abs, -3))
    assert isinstance(dying.exception(timeout=0), ProcessDied)


def test_process_that_dies_after_its_document_costs_nothing(pool):
    kill(pool.result(pool._schedule(os.getpid)))
    assert pool.result(pool.prepare(TEXT)).chunks


def test_process_whose_server_was_killed_ends_with_its_time(five_seconds):
    worker = five_seconds.result(five_seconds._schedule(os.getpid))
    # It holds the lock of its interpreter, so that nothing else in the process can end it.
    stuck = five_seconds._schedule(re.match, "(a+)+$", "a" * 99 + "b")
    (server,) = [each for each in psutil.Process().children() if "forkserver" in " ".join(each.cmdline())]
    server.kill()
    # Not waited for, which is what `multiprocessing` does.
    assert is_over(server.pid)
    # `multiprocessing` looks which processes ended, as with each start.
    assert not multiprocessing.active_children()
    assert not is_over(worker, seconds=0)
    with pytest.raises(BrokenDocument, match="took longer"):
        five_seconds.result(stuck)
    assert is_over(worker)


def is_over(worker, seconds=60):
    """Return True if a process has ended in time, which may be the child of another."""
    ends_at = time.monotonic() + seconds
    while runs(worker) and time.monotonic() < ends_at:
        time.sleep(0.01)
    return not runs(worker)


def runs(worker):
    try:
        return psutil.Process(worker).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(worker):
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(worker)
        process.kill()
        psutil.wait_procs([process], timeout=120)


def half_an_answer(megabytes, ending):
    """End or stop this process in the middle of what it answers, which nobody reads so soon."""

    def end():
        time.sleep(1)
        os.kill(os.getpid(), ending)

    threading.Thread(target=end, daemon=True).start()
    return bytes(megabytes * 1_000_000)


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (signal.SIGKILL, "its extraction process was killed by SIGKILL, as the system does when memory runs out"),
        (signal.SIGSTOP, "took longer than 5 s (extraction.timeout_seconds)"),
    ],
)
def test_process_that_ends_in_the_middle_of_its_answer_costs_its_document_alone(
    five_seconds, monkeypatch, ending, told
):
    """Others would have to wait if they shared the connection, or if the rest of the answer were waited for."""
    hear = ProcessPool._hear

    def hear_late(pool, process):
        if process.tasks and process.tasks[0].function is half_an_answer:
            time.sleep(3)
        hear(pool, process)

    monkeypatch.setattr(ProcessPool, "_hear", hear_late)
    with pytest.raises(BrokenDocument, match=re.escape(told)):
        five_seconds.result(five_seconds._schedule(half_an_answer, 50, ending))
    assert [five_seconds.result(five_seconds._schedule(abs, -number)) for number in range(5)] == [*range(5)]


def test_process_that_stops_while_it_is_sent_to_is_replaced(pool, monkeypatch):
    monkeypatch.setattr(pooled_process, "SEND_SECONDS", 1)
    stopped = []
    send = PooledProcess.send

    def send_to_one_that_stopped(process, task, message):
        if not stopped:
            stopped.append(process._process.pid)
            os.kill(stopped[0], signal.SIGSTOP)
        send(process, task, message)

    monkeypatch.setattr(PooledProcess, "send", send_to_one_that_stopped)
    assert pool.result(pool._schedule(len, bytes(10_000_000))) == 10_000_000
    assert stopped


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")
def test_document_for_which_there_is_no_memory_is_told_so(pool):
    """It is larger than what is left to the process that receives it."""
    for each in (bytes(100_000_000), "x" * 100_000_000):
        pool.result(pool._schedule(leave_little_memory))
        with pytest.raises(BrokenDocument) as raised:
            pool.result(pool._schedule(len, each))
        assert raised.value.reason == "memory"
        pool.result(pool._schedule(os.getpid))
        with suppress(BrokenDocument):
            pool.result(pool._schedule(os._exit, 0))


def leave_little_memory():
    import resource

    taken = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (taken + 50_000_000, taken + 50_000_000))


def test_default_timeout_of_a_program_is_not_that_of_its_processes(pool):
    socket.setdefaulttimeout(0.05)
    try:
        assert pool.result(pool._schedule(time.sleep, 0.5)) is None
        assert len(pool.result(pool._schedule(bytes, 5_000_000))) == 5_000_000
    finally:
        socket.setdefaulttimeout(None)


def test_document_that_kills_each_process_that_receives_it_fails_alone(pool, monkeypatch):
    send = PooledProcess.send

    def send_to_the_dead(process, task, message):
        if task.function is abs:
            kill(process._process.pid)
        send(process, task, message)

    monkeypatch.setattr(PooledProcess, "send", send_to_the_dead)
    with pytest.raises(BrokenDocument, match="its extraction process was killed by SIGKILL"):
        pool.result(pool._schedule(abs, -3))
    assert pool.result(pool.prepare(TEXT)).chunks


@pytest.mark.parametrize(("function", "argument", "reason"), [(os._exit, 3, "crashed"), (time.sleep, 300, "timeout")])
def test_what_a_process_has_in_advance_is_left_to_another(impatient_pool, function, argument, reason):
    bad, *good = [impatient_pool._schedule(function, argument), *(impatient_pool._schedule(abs, -n) for n in range(30))]
    with pytest.raises(BrokenDocument) as raised:
        impatient_pool.result(bad)
    assert raised.value.reason == reason
    assert [impatient_pool.result(each) for each in good] == [*range(30)]


def test_time_in_which_a_document_waits_for_its_process_does_not_count(five_seconds):
    many = [five_seconds._schedule(time.sleep, 3 if number < 2 else 0) for number in range(30)]
    assert [five_seconds.result(each) for each in many] == [None] * 30


def test_large_documents_are_not_sent_in_advance(pool, monkeypatch):
    """Nobody would read what the process answers while they are sent."""
    at_once = set()
    send = PooledProcess.send

    def record(process, task, message):
        at_once.add((len(message) > 4096, len(process.tasks)))
        send(process, task, message)

    monkeypatch.setattr(PooledProcess, "send", record)
    # The others wait by then.
    first = pool._schedule(time.sleep, 0.5)
    many = [pool._schedule(len, b"x" * (200_000 if number % 2 else 10)) for number in range(60)]
    assert [pool.result(each) for each in (first, *many)] == [None, *[10, 200_000] * 30]
    assert at_once == {(False, 0), (False, 1), (True, 0)}


def test_cancelled_document_is_not_read(pool):
    begun, waiting, last = (pool._schedule(time.sleep, seconds) for seconds in (0.5, 3600, 0))
    assert waiting.cancel()
    assert (pool.result(begun), pool.result(last)) == (None, None)


@pytest.mark.parametrize(
    "raised", [KeyError("oak"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), SystemExit(3)], ids=repr
)
def test_error_arrives_with_the_place_where_it_was_raised(pool, raised):
    with pytest.raises(type(raised)) as caught:
        pool.result(pool._schedule(raising, raised))
    assert caught.value.args == raised.args
    assert "in raising" in "".join(traceback.format_exception(caught.value))


def raising(error):
    raise error


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} of {two}")


def test_what_cannot_be_sent_is_told(pool):
    with pytest.raises(RuntimeError, match="oak of ash"):
        pool.result(pool._schedule(raise_unpicklable))
    with pytest.raises((TypeError, AttributeError, RuntimeError), match="lambda"):
        pool.result(pool._schedule(make_lambda))
    assert pool.result(pool._schedule(abs, -3)) == 3


def raise_unpicklable():
    raise Unpicklable("oak", "ash")


def make_lambda():
    return lambda: 0


def test_what_reads_documents_may_start_processes(pool):
    assert pool.result(pool._schedule(exit_code_of_a_child)) == 3


def exit_code_of_a_child():
    child = multiprocessing.get_context("fork").Process(target=os._exit, args=(3,))
    child.start()
    child.join()
    return child.exitcode


def test_pool_whose_processes_cannot_start_breaks(pool):
    pool._pool._start = lambda: PooledProcess(reading_context(), os._exit, (1,))
    with pytest.raises(BrokenProcessPool):
        pool.result(pool.prepare(TEXT))


def test_only_starts_that_fail_in_a_row_break_a_pool(pool):
    start = pool._pool._start
    fails = iter(([True] * 9 + [False]) * 2)

    def start_at_times():
        return PooledProcess(reading_context(), os._exit, (1,)) if next(fails) else start()

    pool._pool._start = start_at_times
    for _ in range(2):
        assert pool.result(pool._schedule(abs, -3)) == 3
        with pytest.raises(BrokenDocument):
            pool.result(pool._schedule(os._exit, 1))
    assert list(fails) == []


def test_process_is_replaced_after_many_documents(pool, monkeypatch):
    monkeypatch.setattr(pool._pool, "_tasks_each", 3)
    workers = [pool.result(pool._schedule(os.getpid)) for _ in range(7)]
    assert [len(set(workers[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 1]
    assert len(set(workers)) == 3


def test_two_documents_are_read_at_the_same_time(two_processes):
    begun = [two_processes._schedule(time.sleep, 3600) for _ in range(2)]
    deadline = time.monotonic() + 120
    while not all(each.running() for each in begun) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(each.running() for each in begun)


def test_one_document_takes_one_process(two_processes):
    for _ in range(3):
        assert two_processes.result(two_processes.prepare(TEXT)).chunks
    (server,) = [each for each in psutil.Process().children() if "forkserver" in " ".join(each.cmdline())]
    assert len(server.children()) == 1


def test_error_that_is_kept_keeps_no_document(pool):
    content = Content()
    kept = weakref.ref(content)
    with pytest.raises(KeyError) as raised:
        pool.result(pool._schedule(raise_for, content))
    del content
    assert (kept(), raised.value.args) == (None, ("oak",))


class Content:
    pass


def raise_for(_):
    raise KeyError("oak")


@pytest.mark.parametrize("is_woken", [True, False])
def test_closed_pool_leaves_no_process_and_no_task(pool, monkeypatch, is_woken):
    """Its thread may learn of the end from its processes, which are killed."""
    worker = pool.result(pool._schedule(os.getpid))
    begun, waiting = (pool._schedule(time.sleep, 3600) for _ in range(2))
    while not begun.running():
        time.sleep(0.01)
    if not is_woken:
        monkeypatch.setattr(pool._pool, "_wake", lambda: None)
    pool.close()
    assert not psutil.pid_exists(worker)
    for future in (begun, waiting):
        with pytest.raises(CancelledError):
            pool.result(future)
