"""Small objects of a large source are read by a process of their own, as they are read here."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from parquetry.errors import SettingsError
from parquetry.sources.base import Place
from parquetry.sources.s3 import process as module
from parquetry.sources.s3 import source as s3_source
from parquetry.sources.s3.reading import READS_ALONE, SMALL_BYTES, ObjectReader
from parquetry.sources.s3.source import open_s3
from tests.sources.s3.reading_process import CountingReader, processes, ready
from tests.workshop import Workshop

NAMES = [f"note {number:02}.txt" for number in range(40)]


@pytest.fixture(autouse=True)
def alone():
    """No process is left of an earlier test, nor by this one."""
    gc.collect()
    assert not processes()
    yield
    gc.collect()
    assert not processes()


@pytest.fixture
def shelf(s3_server, monkeypatch):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.bucket()
    for name in NAMES:
        s3_server.put(bucket, name, f"text of {name}")
    return bucket


def read_all(reader, at_a_time=16):
    with ThreadPoolExecutor(at_a_time) as threads:
        return [found.content.decode() for found in threads.map(lambda name: reader.read(name, 20), NAMES)]


def expected():
    return [f"text of {name}" for name in NAMES]


def test_objects_are_read_elsewhere_once_the_process_answers(shelf):
    reader = CountingReader(shelf, {}, reads_alone=5)
    assert read_all(reader) == expected()
    assert reader.read_here >= 5
    ready(reader)
    before = reader.read_here
    assert read_all(reader) == expected()
    assert reader.read_here == before
    # Whoever finds no line free reads the object itself.
    assert read_all(reader, 40) == expected()
    assert reader.read_here - before < len(NAMES)
    assert len(processes()) == 1
    reader.give_memory_back()


def test_few_objects_need_no_process(shelf):
    reader = CountingReader(shelf, {}, reads_alone=2 * len(NAMES) + 1)
    assert read_all(reader) + read_all(reader) == expected() * 2
    assert not processes()
    assert READS_ALONE >= 100


def test_large_objects_are_read_here(s3_server, shelf):
    s3_server.put(shelf, "large.bin", bytes(SMALL_BYTES + 1))
    reader = CountingReader(shelf, {}, reads_alone=0)
    reader.read(NAMES[0], 20)
    ready(reader)
    before = reader.read_here
    assert reader.read("large.bin", SMALL_BYTES + 1).content == bytes(SMALL_BYTES + 1)
    assert reader.read_here == before + 1
    s3_server.put(shelf, "small.bin", bytes(SMALL_BYTES))
    assert reader.read("small.bin", SMALL_BYTES).content == bytes(SMALL_BYTES)
    assert reader.read_here == before + 1
    reader.give_memory_back()


def test_what_is_read_is_the_same_in_every_respect(shelf):
    here, there = ObjectReader(shelf, {}), CountingReader(shelf, {}, reads_alone=0)
    there._process = ready(there)
    assert there.read(NAMES[0], 20) == here.read(NAMES[0], 20)
    assert not there.read_here
    there.give_memory_back()


def test_readers_share_one_process_each_with_its_own_credentials(s3_server, shelf):
    other = s3_server.bucket()
    s3_server.put(other, NAMES[0], "of the other bucket")
    good = {"key": s3_server.access_key, "secret": s3_server.secret_key}
    readers = [
        CountingReader(shelf, good, reads_alone=0),
        CountingReader(other, good, reads_alone=0),
        CountingReader(shelf, {**good, "secret": "not-the-secret"}, reads_alone=0),
    ]
    for reader in readers:
        reader._process = ready(reader)
    (process,) = processes()
    assert readers[0].read(NAMES[0], 20).content == b"text of note 00.txt"
    assert readers[1].read(NAMES[0], 20).content == b"of the other bucket"
    with pytest.raises(SettingsError, match="the secret key is wrong") as caught:
        readers[2].read(NAMES[0], 20)
    assert "not-the-secret" not in str(caught.value)
    assert not any(reader.read_here for reader in readers)
    assert not [word for word in process.cmdline() if s3_server.secret_key in word]
    readers[0].give_memory_back()
    assert readers[1].read(NAMES[0], 20).content == b"of the other bucket"
    assert processes() == [process]
    for reader in readers:
        reader.give_memory_back()
    assert not processes()


def test_reads_go_on_when_the_process_is_killed_and_one_line_says_so(shelf, caplog):
    reader = CountingReader(shelf, {}, reads_alone=0)
    reader._process = ready(reader)
    assert read_all(reader) == expected()
    (process,) = processes()
    with ThreadPoolExecutor(20) as threads:
        reads = [threads.submit(reader.read, name, 20) for name in NAMES * 5]
        process.kill()
        assert [each.result().content.decode() for each in reads] == expected() * 5
    with caplog.at_level(logging.WARNING):
        assert read_all(reader) == expected()
    told = [record.message for record in caplog.records if "process that reads objects" in record.message]
    assert told == ["the process that reads objects of S3 has ended; the run goes on without it, more slowly"]
    reader.give_memory_back()


def test_process_that_cannot_start_costs_nothing_but_time(shelf, monkeypatch, caplog):
    monkeypatch.setattr(module, "_MODULE", "parquetry.no_such_module")
    reader = CountingReader(shelf, {}, reads_alone=0)
    while "has ended" not in caplog.text:
        assert read_all(reader) == expected()
    assert reader.read_here % len(NAMES) == 0
    reader.give_memory_back()


def test_system_without_room_for_a_process_is_told_once(shelf, monkeypatch, caplog):
    def full(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(module.subprocess, "Popen", full)
    reader = CountingReader(shelf, {}, reads_alone=0)
    assert read_all(reader) + read_all(reader) == expected() * 2
    assert caplog.text.count("Resource temporarily unavailable") == 1


def test_fork_of_the_program_leaves_the_process_alone(shelf):
    reader = CountingReader(shelf, {}, reads_alone=0)
    reader._process = ready(reader)
    child = os.fork()
    if not child:
        reader._process._end()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert reader.read(NAMES[0], 20).content == b"text of note 00.txt"
    assert not reader.read_here
    reader.give_memory_back()


def test_process_ends_with_a_program_that_is_killed(shelf):
    """Nobody is there to end it then."""
    program = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from tests.sources.s3.reading_process import ready\n"
            "process = ready(print); print(1, flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with program:
        program.stdout.readline()
        (process,) = processes(program.pid)
        program.send_signal(signal.SIGKILL)
        assert process.wait(60) is None
    assert not psutil.pid_exists(process.pid) or process.status() == psutil.STATUS_ZOMBIE


def test_source_ends_its_process_when_it_gives_memory_back(shelf):
    source = open_s3(Place("docs", f"s3://{shelf}"))
    source._reader._process = ready(source._reader)
    (item,) = [each for each in source.scan() if each.path == NAMES[0]]
    assert source.fetch(item)[1] == b"text of note 00.txt"
    assert len(processes()) == 1
    source.give_memory_back()
    assert not processes()
    assert source.fetch(item)[1] == b"text of note 00.txt"


def test_run_ends_the_process_of_its_source(s3_server, shelf, tmp_path, monkeypatch):
    """The whole way: through the globs and the archives of a source, to the end of a run."""
    seen = []

    class Watched(ObjectReader):
        def __init__(self, bucket, options):
            super().__init__(bucket, options, reads_alone=3)

        def read(self, key, size):
            if self._process is not None:
                seen.append(len(processes()))
            return super().read(key, size)

    monkeypatch.setattr(s3_source, "ObjectReader", Watched)
    workshop = Workshop(tmp_path)
    workshop.sections["source"] = {"uri": f"s3://{shelf}", "include": ["*.txt"]}
    report = workshop.refresh()
    assert (report.documents.added, report.documents.failed) == (len(NAMES), 0)
    assert seen
    assert set(seen) == {1}
    assert not processes()
