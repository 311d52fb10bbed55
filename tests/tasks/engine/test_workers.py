"""A document that hangs, exhausts memory or kills its process fails alone."""

import multiprocessing
import os
import re
import signal
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
from pydantic import SecretStr

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.model import ChunkSize, Part, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from parquetry.tasks.engine import process_pool, reading_process
from parquetry.tasks.engine.fork_server import reading_context
from parquetry.tasks.engine.process_pool import ProcessDied
from parquetry.tasks.engine.workers import WorkerPool
from tests.files.pdf_writer import encrypted, line, write_pdf

TEXT = RawDocument(b"# Leave\n\nThirty days.\n", "leave.md")


@pytest.fixture
def pool():
    yield from pool_with(60)


@pytest.fixture
def impatient_pool():
    yield from pool_with(2)


@pytest.fixture
def five_seconds():
    yield from pool_with(5)


@pytest.fixture
def two_processes():
    yield from pool_with(60, 2)


def pool_with(seconds, workers=1):
    settings = ExtractionSettings(workers=workers, timeout_seconds=seconds, memory_mb=1024)
    made = WorkerPool(settings, ChunkingSettings(), None)
    yield made
    made.close()


def test_document_is_extracted_and_chunked(pool):
    prepared = pool.result(pool.prepare(TEXT))
    assert "Thirty days." in prepared.extraction.text
    assert [prepared.extraction.text[chunk.start : chunk.end] for chunk in prepared.chunks] == [
        prepared.extraction.text
    ]


def test_stored_text_is_chunked_again(pool):
    text = "One sentence. " * 300
    chunks = pool.result(pool.chunk(text, (Part(0, len(text), "document", 1, None, "text"),), ()))
    assert len(chunks) > 2
    assert all(0 <= chunk.start < chunk.end <= len(text) for chunk in chunks)


def test_settings_arrive_whatever_their_values_and_a_document_has_chunks_of_its_own_size():
    """Sections are sent as plain values; passwords and own sizes need more than those."""
    locked = RawDocument(encrypted(write_pdf([line(72, 700, "the keeper's secret")]), "oak"), "a.pdf")
    words = RawDocument("".join(f"Sentence number {number}. " for number in range(60)).encode(), "a.txt")
    pool = WorkerPool(
        ExtractionSettings(workers=1, ocr=False, passwords=(SecretStr("oak"),)),
        ChunkingSettings(size=300, overlap=0),
        None,
    )
    try:
        assert pool.result(pool.prepare(locked)).extraction.text == "the keeper's secret"
        plain, own = (pool.result(pool.prepare(words, size)).chunks for size in (None, ChunkSize(50, 0)))
        assert 200 < max(chunk.end - chunk.start for chunk in plain) <= 300
        assert 100 < max(chunk.end - chunk.start for chunk in own) <= 200
    finally:
        pool.close()


def test_refusal_of_an_extractor_arrives_as_it_was_raised(pool):
    with pytest.raises(SkippedDocument) as raised:
        pool.result(pool.prepare(RawDocument(b"", "empty.md")))
    assert raised.value.reason == "empty"


@pytest.mark.parametrize(
    ("function", "argument", "reason", "detail"),
    [
        pytest.param(
            bytearray, 8 << 30, "memory", "needed more than 1024 MiB (extraction.memory_mb)", id="eats-memory"
        ),
        pytest.param(os._exit, 3, "crashed", "its extraction process died (exit code 3)", id="leaves"),
        pytest.param(os.abort, None, "crashed", "its extraction process was killed by SIGABRT", id="aborts"),
    ],
)
def test_limit_fails_one_document_and_the_next_one_is_fine(pool, function, argument, reason, detail):
    arguments = () if argument is None else (argument,)
    with pytest.raises(BrokenDocument) as raised:
        pool.result(pool._schedule(function, *arguments))
    assert (raised.value.reason, raised.value.detail) == (reason, detail)
    assert pool.result(pool.prepare(TEXT)).chunks


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


def kill(worker):
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(worker)
        process.kill()
        psutil.wait_procs([process], timeout=120)


def sends_half(megabytes):
    """Kill this process as the system does for want of memory, in the middle of what it sends."""
    threading.Thread(target=kill_when_stuck, daemon=True).start()
    return bytes(megabytes * 1_000_000)


def kill_when_stuck():
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def test_process_that_is_killed_while_it_sends_costs_its_document_alone(two_processes, monkeypatch):
    """A connection that processes share would be blocked for all of them."""
    hear = process_pool.ProcessPool._hear

    def hear_late(pool, process):
        if process.tasks and process.tasks[0].function is sends_half:
            time.sleep(3)
        hear(pool, process)

    monkeypatch.setattr(process_pool.ProcessPool, "_hear", hear_late)
    told = "its extraction process was killed by SIGKILL, as the system does when memory runs out"
    with pytest.raises(BrokenDocument, match=told):
        two_processes.result(two_processes._schedule(sends_half, 50))
    assert [two_processes.result(two_processes._schedule(abs, -number)) for number in range(5)] == [*range(5)]


def test_document_that_kills_each_process_that_receives_it_fails_alone(pool, monkeypatch):
    send = process_pool._Process.send

    def send_to_the_dead(process, task, message):
        if task.function is abs:
            kill(process._process.pid)
        send(process, task, message)

    monkeypatch.setattr(process_pool._Process, "send", send_to_the_dead)
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
    send = process_pool._Process.send

    def record(process, task, message):
        at_once.add((len(message) > 4096, len(process.tasks)))
        send(process, task, message)

    monkeypatch.setattr(process_pool._Process, "send", record)
    many = [pool._schedule(len, b"x" * (200_000 if number % 2 else 10)) for number in range(60)]
    assert [pool.result(each) for each in many] == [10, 200_000] * 30
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
    pool._pool._start = lambda: process_pool._Process(reading_context(), os._exit, (1,))
    with pytest.raises(BrokenProcessPool):
        pool.result(pool.prepare(TEXT))


def test_only_starts_that_fail_in_a_row_break_a_pool(pool):
    start = pool._pool._start
    fails = iter(([True] * 9 + [False]) * 2)

    def start_at_times():
        return process_pool._Process(reading_context(), os._exit, (1,)) if next(fails) else start()

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
    while not all(each.running() for each in begun):
        time.sleep(0.01)


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


def test_document_that_hangs_fails_and_the_next_one_is_fine(impatient_pool):
    with pytest.raises(BrokenDocument, match=re.escape("took longer than 2 s (extraction.timeout_seconds)")) as raised:
        impatient_pool.result(impatient_pool._schedule(time.sleep, 300))
    assert raised.value.reason == "timeout"
    assert impatient_pool.result(impatient_pool._schedule(abs, -3)) == 3


def test_worker_writes_nothing_to_the_terminal(pool, capfd):
    pool.result(pool._schedule(os.system, "echo loud; echo louder >&2"))
    pool.result(pool._schedule(print, "print"))
    assert capfd.readouterr() == ("", "")


def test_closed_pool_leaves_no_process_and_no_task(pool):
    worker = pool.result(pool._schedule(os.getpid))
    begun, waiting = (pool._schedule(time.sleep, 3600) for _ in range(2))
    while not begun.running():
        time.sleep(0.01)
    pool.close()
    assert not psutil.pid_exists(worker)
    for future in (begun, waiting):
        with pytest.raises(CancelledError):
            pool.result(future)


FREED_BELOW_A_BLOCK_IN_USE = """
import ctypes
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [library.malloc(1000) for _ in range(150_000)]
for block in blocks[:-1]:
    library.free(block)
"""
"""code after which the C library of Linux keeps 150 MB"""


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries keep memory in other ways")
def test_memory_that_a_large_document_took_is_given_back(pool):
    """Each worker kept hundreds of megabytes after a manual of a thousand pages."""
    pool.result(pool._schedule(exec, FREED_BELOW_A_BLOCK_IN_USE, {}))
    (server,) = [each for each in psutil.Process().children() if "forkserver" in " ".join(each.cmdline())]
    (worker,) = server.children()
    before = worker.memory_info().rss
    pool.result(pool.prepare(TEXT))
    assert worker.memory_info().rss > before - 50_000_000
    pool.result(pool.prepare(RawDocument(b"Thirty days of leave. " * 50_000, "large.txt")))
    assert worker.memory_info().rss < before - 50_000_000


def test_memory_is_given_back_after_each_megabyte_of_documents(monkeypatch):
    given, read = [], []
    monkeypatch.setattr(reading_process, "_read_bytes", 0)
    monkeypatch.setattr(reading_process, "_extraction", ExtractionSettings(), raising=False)
    monkeypatch.setattr(reading_process, "_chunking", ChunkingSettings(), raising=False)
    monkeypatch.setattr(reading_process, "_tokenizer", None, raising=False)
    monkeypatch.setattr(reading_process.freed_memory, "give_back", lambda: given.append(len(read)))
    for _ in range(8):
        read.append(document := RawDocument(b"oak " * 100_000, "a.txt"))
        reading_process.prepare(document, None)
    reading_process._chunker.cache_clear()
    assert given == [3, 6]
