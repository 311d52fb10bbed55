"""Failures of a Prefect server's services, detected in its log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic

from parquetry.deployments.watch import Trouble
from parquetry.masking import masked

QUIET_SECONDS = 300
"""seconds without a new failure after which a service counts as working; each runs more often than that"""
_RECORD = re.compile(r"^\d\d:\d\d:\d\d\.\d{3} \| (\w+) +\| ([\w.]+) - (.*)$")
_SERVICES = ("docket", "prefect.server.services", "prefect.server.events")
"""loggers of the server's services outside its API; docket runs the periodic ones"""
_CALLED = re.compile(r"(?<!\w)(\w++)\(")
_LONGEST = 300
"""maximum number of characters of a reason"""


class ServerLog:
    """Reader of a growing Prefect server log.

    Args:
        file: log file; existing lines are read, too.
        clock: monotonic clock in seconds.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = monotonic) -> None:
        self._file, self._clock = file, clock
        self._offset = 0
        self._line = b""
        """incomplete last line"""
        self._service: str | None = None
        """service whose failure is being read; None for none"""
        self._failed: dict[str, tuple[float, str]] = {}
        """service -> time of the last failure, and its reason"""

    def look(self) -> Iterable[Trouble]:
        """Yield the services that failed recently."""
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
            # The last unindented line of a traceback is the error.
            reason = line
        if self._service and reason.strip() and not reason.startswith((" ", "Traceback")):
            self._failed[self._service] = self._clock(), masked(reason.strip())[:_LONGEST]
