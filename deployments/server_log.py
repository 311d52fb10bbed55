"""Failures of a Prefect server's services, as its log tells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic

from parquetry.deployments.watch import Trouble
from parquetry.masking import masked

QUIET_SECONDS = 300
"""after which a service that failed and does not fail again is taken to work; each of them runs more often"""
_RECORD = re.compile(r"^\d\d:\d\d:\d\d\.\d{3} \| (\w+) +\| ([\w.]+) - (.*)$")
_SERVICES = ("docket", "prefect.server.services", "prefect.server.events")
"""loggers of what runs in the server besides its API; docket runs the services that repeat"""
_CALLED = re.compile(r"(?<!\w)(\w++)\(")
_LONGEST = 300
"""characters of a reason"""


class ServerLog:
    """Reads the log of a Prefect server as it grows.

    Args:
        file: the log; what stands in it already is read too.
        clock: seconds, from any start.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = monotonic) -> None:
        self._file, self._clock = file, clock
        self._offset = 0
        self._line = b""
        """a line whose end is not written yet"""
        self._service: str | None = None
        """whose failure is being read"""
        self._failed: dict[str, tuple[float, str]] = {}
        """service -> when it failed last, and why"""

    def look(self) -> Iterable[Trouble]:
        """Services that failed lately."""
        for line in self._new_lines():
            self._read(line)
        oldest = self._clock() - QUIET_SECONDS
        self._failed = {service: (when, why) for service, (when, why) in self._failed.items() if when > oldest}
        for service, (_, why) in self._failed.items():
            yield Trouble(
                f"service {service}",
                f"the Prefect server's service {service} fails: {why}; its log is {self._file}",
                f"the Prefect server's service {service} has not failed for {QUIET_SECONDS // 60} minutes",
            )

    def _new_lines(self) -> list[str]:
        with self._file.open("rb") as stream:
            stream.seek(self._offset)
            new = stream.read()
        self._offset += len(new)
        *lines, self._line = (self._line + new).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def _read(self, line: str) -> None:
        record = _RECORD.match(line)
        if record:
            level, logger, message = record.groups()
            failed = level in ("ERROR", "CRITICAL") and logger.startswith(_SERVICES)
            called = _CALLED.search(message) if logger.startswith("docket") else None
            self._service = (called[1] if called else logger) if failed else None
            reason = message
        else:
            # The last line of a traceback that stands at the margin is the error.
            reason = line
        if self._service and reason.strip() and not reason.startswith((" ", "Traceback")):
            self._failed[self._service] = self._clock(), masked(reason.strip())[:_LONGEST]
