"""Child processes of a service, started again when they die; the end of their input tells them to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SETTLED_SECONDS = 10.0
"""seconds after which a process counts as having started well"""
LONGEST_PAUSE = 30.0
"""seconds before a process that keeps dying is started again"""
_FIRST_PAUSE = 0.5
_WRONG_SETTINGS = 2


@dataclass
class Child:
    """A process, and what it takes to start it."""

    name: str
    """its task, for lines: `the process that ...`"""
    module: str
    environment: Mapping[str, str]
    first_line: Callable[[int], Mapping[str, Any]]
    """process id -> JSON object of its first line of input"""
    descriptors: Sequence[int] = ()
    """file descriptors that it inherits"""
    on_line: Callable[[str], None] | None = None
    """receives its lines on standard output; None to let it write to that of this process"""
    process: subprocess.Popen[str] | None = None
    started: float = 0.0
    again_at: float = 0.0
    pause: float = _FIRST_PAUSE
    stopping: bool = False
    _reader: threading.Thread | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start the process."""
        posix = os.name == "posix"
        self.process = subprocess.Popen(
            # Modules of the working folder are none of ours.
            [sys.executable, "-P", "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=None if self.on_line is None else subprocess.PIPE,
            env=dict(self.environment),
            text=True,
            encoding="utf-8",
            pass_fds=self.descriptors if posix else (),
            # An interrupt at the terminal is for the service, which stops its processes in order.
            start_new_session=posix,
        )
        self.started = time.monotonic()
        self.tell(json.dumps(self.first_line(self.process.pid)))
        if self.on_line is not None:
            self._reader = threading.Thread(target=self._read, args=(self.process, self.on_line), daemon=True)
            self._reader.start()

    def tell(self, line: str) -> None:
        """Send the process a line; a process that is gone is looked after elsewhere."""
        process = self.process
        if process is None or process.stdin is None:
            return
        try:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        except (OSError, ValueError):
            return

    def stop(self) -> None:
        """Tell the process to stop."""
        self.stopping = True
        self._close_input()

    def ended(self, seconds: float = 0.0) -> int | None:
        """Return the exit code of the process; None if it still runs after a time."""
        if self.process is None:
            return 0
        try:
            return self.process.wait(seconds) if seconds else self.process.poll()
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process at once."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def look(self, tell: Callable[[str], None]) -> int | None:
        """Start the process again if it died, after a pause that grows.

        Returns:
            An exit code with which the service has to stop: settings do not get right by themselves.
        """
        if self.stopping or self.process is None:
            return None
        now = time.monotonic()
        if self.again_at:
            if now >= self.again_at:
                self.again_at = 0.0
                self.start()
            return None
        code = self.process.poll()
        if code is None:
            return None
        self._close_input()
        lived = now - self.started
        if code == _WRONG_SETTINGS and lived < SETTLED_SECONDS:
            return code
        self.pause = _FIRST_PAUSE if lived >= SETTLED_SECONDS else min(self.pause * 2, LONGEST_PAUSE)
        self.again_at = now + self.pause
        tell(f"the process that {self.name} ended ({_told(code)}); it is started again in {self.pause:g} s")
        return None

    def _close_input(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except OSError:
                return

    @staticmethod
    def _read(process: subprocess.Popen[str], on_line: Callable[[str], None]) -> None:
        if process.stdout is not None:
            with process.stdout:
                for line in process.stdout:
                    on_line(line.rstrip("\n"))


def _told(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
