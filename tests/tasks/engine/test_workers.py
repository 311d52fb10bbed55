"""A document that hangs, exhausts memory or kills its process fails alone."""

import os
import re
import sys
import time

import psutil
import pytest
from pydantic import SecretStr

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.model import ChunkSize, Part, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from parquetry.tasks.engine import reading_process
from parquetry.tasks.engine.workers import WorkerPool
from tests.files.pdf_writer import encrypted, line, write_pdf
from tests.tasks.engine.conftest import TEXT


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


def test_document_that_hangs_fails_and_the_next_one_is_fine(impatient_pool):
    with pytest.raises(BrokenDocument, match=re.escape("took longer than 2 s (extraction.timeout_seconds)")) as raised:
        impatient_pool.result(impatient_pool._schedule(time.sleep, 300))
    assert raised.value.reason == "timeout"
    assert impatient_pool.result(impatient_pool._schedule(abs, -3)) == 3


def test_worker_writes_nothing_to_the_terminal(pool, capfd):
    pool.result(pool._schedule(os.system, "echo loud; echo louder >&2"))
    pool.result(pool._schedule(print, "print"))
    assert capfd.readouterr() == ("", "")


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
    monkeypatch.setattr(reading_process, "_searches_before", reading_process._searches())
    monkeypatch.setattr(reading_process, "_extraction", ExtractionSettings(), raising=False)
    monkeypatch.setattr(reading_process, "_chunking", ChunkingSettings(), raising=False)
    monkeypatch.setattr(reading_process, "_tokenizer", None, raising=False)
    monkeypatch.setattr(reading_process.freed_memory, "give_back", lambda: given.append(len(read)))
    for _ in range(8):
        read.append(document := RawDocument(b"oak " * 100_000, "a.txt"))
        reading_process.prepare(document, None)
    reading_process._chunker.cache_clear()
    assert given == [3, 6]


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")
def test_garbage_of_earlier_documents_is_not_memory_of_the_next(pool):
    """The tree of some small documents takes hundreds of megabytes, and its nodes refer to one another."""
    for _ in range(4):
        pool.result(pool._schedule(leave_garbage, 400))
        assert pool.result(pool.prepare(TEXT)).chunks


def leave_garbage(megabytes):
    tree = []
    for _ in range(250_000):
        tree.append([tree, bytes(megabytes * 4)])
