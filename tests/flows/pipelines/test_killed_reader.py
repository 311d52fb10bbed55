"""Processes that read documents, killed as for want of memory: each costs one document, until the next run."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from parquetry.tasks.engine.pooled_process import PooledProcess


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("workers", [1, 2])
def test_document_whose_process_is_killed_fails_alone_and_is_read_by_the_next_run(workshop, monkeypatch, workers):
    workshop.sections["extraction"] = {"workers": workers}
    names = [f"{number}.md" for number in range(40)]
    for name in names:
        workshop.write(name, f"The oak {name} is old.")
    send, killed = PooledProcess.send, []

    def send_and_kill(process, task, message):
        (document, *_) = task.arguments
        if document.filename != "7.md":
            send(process, task, message)
            return
        # Stopped first, so that it cannot have answered.
        killed.append(process._process.pid)
        os.kill(killed[0], signal.SIGSTOP)
        send(process, task, message)
        os.kill(killed[0], signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(PooledProcess, "send", send_and_kill)
        report = workshop.refresh()
    assert len(killed) == 1
    assert (report.error, report.documents.added, report.documents.failed) == (None, 39, 1)
    # This one, or the one that the process worked on, if it had this one in advance.
    (failure,) = report.failures
    told = "its extraction process was killed by SIGKILL, as the system does when memory runs out"
    assert (failure.reason, failure.detail) == ("crashed", told)
    assert sorted(workshop.rows()) == sorted(names)
    report = workshop.refresh()
    assert (report.documents.added + report.documents.changed, report.documents.failed) == (1, 0)
    assert {row.status for row in workshop.rows().values()} == {"indexed"}
