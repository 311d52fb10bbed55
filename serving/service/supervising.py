"""A service: the processes that answer requests, and the one that carries out jobs, started and stopped together."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from parquetry.process_folder import process_folder
from parquetry.serving.service.children import Child
from parquetry.serving.service.listening import handed_over
from parquetry.serving.state.environment import VARIABLE

APPLICATION = "parquetry.serving.http.app:create_app"
ANSWERING = "parquetry.serving.service.answering"
JOBS = "parquetry.serving.jobs.process"
MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""environment variable with the folder in which several processes keep their metrics"""
READY, DRAIN = "ready", "drain"
"""lines of the processes' protocol; see their modules, which import too much to be imported here"""
_REQUESTS_SECONDS = 12.0
"""seconds for requests to finish; the processes give up after 10"""
_JOBS_SECONDS = 12.0
"""seconds for the work in progress to reach a safe point; its process gives up after 8"""
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Service:
    """A service to run."""

    listener: socket.socket
    told_settings: str
    """value of the environment variable from which each process loads its settings"""
    workers: int
    """processes that answer requests"""
    jobs: Mapping[str, Any] | None
    """targets and namespace for the process that carries out jobs; None for a read-only service"""
    tell: Callable[[str], None]
    """receives lines for the terminal"""
    on_ready: Callable[[], None]
    """called once requests are answered"""
    application: str = APPLICATION
    """factory of the ASGI application"""

    def run(self) -> int:
        """Run the service until it is told to stop; return its exit code."""
        stopping = threading.Event()
        with _signals(stopping), TemporaryDirectory(dir=process_folder()) as metrics:
            answering, jobs = self._children(metrics)
            try:
                for child in (*answering, *jobs):
                    child.start()
                code = self._supervise([*answering, *jobs], stopping)
            finally:
                self._stop(answering, jobs)
        return code

    def _children(self, metrics: str) -> tuple[list[Child], list[Child]]:
        environment = {**os.environ, VARIABLE: self.told_settings}
        if self.workers > 1:
            # Each worker counts for itself; whichever is asked adds up the numbers of all.
            environment[MULTIPROCESS] = metrics
        ready = threading.Event()

        def on_line(line: str) -> None:
            if line == READY and not ready.is_set():
                ready.set()
                self.on_ready()

        def first_line(pid: int) -> dict[str, Any]:
            return {"app": self.application, **handed_over(self.listener, pid)}

        inherited = (self.listener.fileno(),)
        answering = [
            Child("answers requests", ANSWERING, environment, first_line, inherited, on_line)
            for _ in range(self.workers)
        ]
        asked = self.jobs
        if asked is None:
            return answering, []
        return answering, [Child("carries out jobs", JOBS, environment, lambda _: asked)]

    def _supervise(self, children: Sequence[Child], stopping: threading.Event) -> int:
        while not stopping.wait(_LOOK_SECONDS):
            for child in children:
                code = child.look(self.tell)
                if code is not None:
                    return code
        return 0

    def _stop(self, answering: Sequence[Child], jobs: Sequence[Child]) -> None:
        """Let requests finish while the writes that they wait for are carried out; then stop these, too."""
        self.listener.close()
        for child in jobs:
            child.tell(DRAIN)
        for children, seconds in ((answering, _REQUESTS_SECONDS), (jobs, _JOBS_SECONDS)):
            deadline = time.monotonic() + seconds
            for child in children:
                child.stop()
            for child in children:
                if child.ended(max(0.01, deadline - time.monotonic())) is None:
                    child.kill()


@contextmanager
def _signals(stopping: threading.Event) -> Iterator[None]:
    """Stop at an interrupt, and when a service manager says so."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
