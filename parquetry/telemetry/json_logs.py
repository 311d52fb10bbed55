"""Log lines as JSON objects, one a line, for collectors of logs."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from parquetry.masking import masked
from parquetry.printing import json_text, tell
from parquetry.settings.observability import ObservabilitySettings

RUNS, SERVICE = "parquetry_runs", "parquetry_service"
"""loggers of lines for JSON logs only: not below `parquetry`, whose records a flow run also sends to Prefect"""
_OURS = ("parquetry", RUNS, SERVICE)
_lock = threading.Lock()
_running: dict[str, str | None] = {}
"""id of each run in progress in this process -> name of its source; None if it has several"""


class JsonFormatter(logging.Formatter):
    """Formatter of records as JSON objects: time, level, logger, message, run_id and source, error with its traceback.

    `run_id` and `source` are those given with the record, else those of the only run in progress, else null.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        run_id, source = _only_run()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": masked(record.getMessage()),
            "run_id": getattr(record, "run_id", run_id),
            "source": getattr(record, "source", source),
        }
        if record.exc_text or record.exc_info:
            line["error"] = masked(record.exc_text or self.formatException(record.exc_info or (None, None, None)))
        return json_text(line)


@contextmanager
def run_in_progress(run_id: str, sources: Iterable[str]) -> Iterator[None]:
    """Name the run of log lines that are written meanwhile, in any thread."""
    names = set(sources)
    with _lock:
        _running[run_id] = names.pop() if len(names) == 1 else None
    try:
        yield
    finally:
        with _lock:
            _running.pop(run_id, None)


def _only_run() -> tuple[str | None, str | None]:
    with _lock:
        return next(iter(_running.items())) if len(_running) == 1 else (None, None)


def log_service(settings: ObservabilitySettings) -> None:
    """Set up the log of a process of a service: warnings on stderr, as text or as JSON with lines of progress."""
    if settings.log_format == "text":
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        return
    _install()
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda kind, error, trace: _uncaught((kind, error, trace))
    threading.excepthook = lambda failed: _uncaught((failed.exc_type, failed.exc_value, failed.exc_traceback))


def log_run(settings: ObservabilitySettings) -> bool:
    """Set up the log of a process that runs something once; return True if its lines are to be JSON."""
    if is_json():
        return True
    if settings.log_format == "text" or sys.stderr.isatty():
        return False
    _install()
    return True


def is_json() -> bool:
    """Return True if the log of this process is JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def say(line: str, *, is_problem: bool = False) -> None:
    """Print a line of a service: to the terminal, or to a JSON log.

    Args:
        line: without its end.
        is_problem: True for stderr, or a warning.
    """
    if is_json():
        logging.getLogger(SERVICE).log(logging.WARNING if is_problem else logging.INFO, "%s", line)
    else:
        tell(line, err=is_problem)


def _install() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)


def _uncaught(error: Any) -> None:
    kind, raised, trace = error
    if isinstance(raised, SystemExit) or kind is SystemExit:
        return
    logging.getLogger(SERVICE).critical("uncaught %s", getattr(kind, "__name__", kind), exc_info=(kind, raised, trace))
