"""The versions that processes follow: dead processes are waited for by nobody."""

import json
import os
import subprocess
import sys
import threading

import pytest

from parquetry.serving.state.workers import (
    ThisProcess,
    WorkerRecord,
    is_alive,
    versions_followed,
    wait_until_followed,
)


def test_nobody_answers_so_every_version_is_followed(tmp_path):
    assert wait_until_followed(tmp_path, 7, 0)


def test_wait_ends_when_the_last_process_follows(tmp_path):
    record = WorkerRecord(tmp_path)
    record.announce(3)
    assert not wait_until_followed(tmp_path, 4, 0.05)
    thread = threading.Timer(0.05, record.announce, (5,))
    thread.start()
    assert wait_until_followed(tmp_path, 4, 60)
    thread.join()
    assert versions_followed(tmp_path) == {os.getpid(): 5}
    record.withdraw()
    assert versions_followed(tmp_path) == {}


def test_record_of_a_dead_process_is_removed(tmp_path):
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from parquetry.serving.state.workers import WorkerRecord; "
            "WorkerRecord(pathlib.Path(sys.argv[1])).announce(1)",
            str(tmp_path),
        ],
        check=True,
    )
    assert process.returncode == 0
    (record,) = (tmp_path / "workers").iterdir()
    assert wait_until_followed(tmp_path, 2, 0)
    assert not record.exists()


def test_process_with_the_number_of_an_earlier_one_is_another(tmp_path):
    WorkerRecord(tmp_path).announce(1)
    (record,) = (tmp_path / "workers").iterdir()
    told = json.loads(record.read_text())
    record.write_text(json.dumps(told | {"started": repr(float(told["started"]) - 100)}))
    assert versions_followed(tmp_path) == {}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"pid": "x", "started": "1", "version": 1}', '"a"'])
def test_record_that_says_nothing_is_removed(tmp_path, content):
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "7.json").write_text(content)
    assert wait_until_followed(tmp_path, 1, 0)
    assert not list((tmp_path / "workers").iterdir())


def test_this_process_is_alive():
    me = ThisProcess.get()
    assert is_alive(me.pid, me.started)
    assert not is_alive(me.pid, "1.0")
    assert not is_alive(None, None)
