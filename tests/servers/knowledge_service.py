"""The service as `parquetry serve` starts it: real processes and a real socket on a free port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

_URL = re.compile(r"http://[\w.:\[\]-]+:\d+")


class KnowledgeService:
    """A running service.

    Args:
        folder: folder that the command runs in.
        arguments: of `parquetry serve`, besides `--port`.
        environment: variables on top of this process's.
    """

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "parquetry.serving.cli.main", "serve", "--port", "0", *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._url = ""
        self._told = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        with self._told:
            self._told.wait_for(lambda: self._url or self._process.poll() is not None, 120)
        if not self._url:
            self.stop()
            raise AssertionError("the service did not start:\n" + self.output)

    def __enter__(self) -> KnowledgeService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return self._url

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """All that it printed."""
        return "".join(self.lines)

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """Return a client of the service."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self._url, headers=headers, timeout=120, trust_env=False, **options)

    def wait_ready(self, seconds: float = 120) -> None:
        """Wait until it answers questions."""
        self.wait_for(lambda client: client.get("/ready").status_code == 200, seconds)

    def wait_for(self, condition: Any, seconds: float = 120) -> None:
        """Wait for a condition on the service, a function of a client."""
        end = time.monotonic() + seconds
        with self.client() as client:
            while not condition(client):
                assert time.monotonic() < end, f"it did not come true:\n{self.output}"
                assert self._process.poll() is None, f"the service ended:\n{self.output}"
                time.sleep(0.05)

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Stop it; return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._reader.join(30)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return self._process.returncode

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.lines.append(line)
            found = _URL.search(line)
            with self._told:
                if found and not self._url:
                    self._url = found[0]
                self._told.notify_all()
        with self._told:
            self._told.notify_all()
