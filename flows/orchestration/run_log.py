"""Progress of a run in the flow run's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prefect import get_run_logger
from prefect.exceptions import MissingContextError

from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.run_lines import LoggedRun


class RunLog(LoggedRun):
    """Observer that logs progress to the flow run's log and forwards it to another observer.

    Args:
        watcher: observer to forward to.
    """

    def __init__(self, watcher: Observer) -> None:
        super().__init__(watcher, get_run_logger())


class _ToRunLog(logging.Handler):
    """Handler that forwards records to the log of the current flow or task run."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log = get_run_logger()
        except MissingContextError:
            return
        log.log(record.levelno, record.msg, *(record.args or ()))


@contextmanager
def tasks_log_to_run() -> Iterator[None]:
    """Forward the steps' own log records, which do not depend on Prefect, to the flow run's log."""
    log, handler = logging.getLogger("parquetry"), _ToRunLog()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
