"""Masking of secrets and terminal control characters in logs, warnings and tracebacks of this process."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from parquetry.masking import mask_error, masked
from parquetry.printing import VisibleRecord, tell, tell_text, visible_text

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def guard_output() -> None:
    """Mask every log record, every warning, and the traceback of every uncaught error.

    Log records are masked as they are made, before any handler sees them: on the way to a terminal, to a file, or to
    Prefect's API.
    """
    made = logging.getLogRecordFactory()
    if getattr(made, "masks", False):
        return

    def make(*values: Any, **named: Any) -> logging.LogRecord:
        return _masked_record(VisibleRecord(*values, **named))

    make.masks = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make)
    sys.excepthook = _tell
    sys.unraisablehook = _tell_of_ignored
    threading.excepthook = _tell_of_thread
    formatted = warnings.formatwarning
    warnings.formatwarning = lambda *values, **named: visible_text(masked(formatted(*values, **named)))


@contextmanager
def masked_errors() -> Iterator[None]:
    """Mask errors that leave the block, before Prefect stores them."""
    try:
        yield
    except Exception as error:
        mask_error(error)
        raise


def _masked_record(record: logging.LogRecord) -> logging.LogRecord:
    try:
        message = logging.LogRecord.getMessage(record)
    except (TypeError, ValueError, KeyError):
        # The message does not fit its values, and logging reports where it is written.
        return record
    shown = masked(message)
    if shown != message:
        # Handlers format messages again, or pass on their parts.
        record.msg, record.args = shown, ()
    if record.exc_info and record.exc_info[1] is not None:
        told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        shown = masked(told)
        if shown != told:
            record.exc_text, record.exc_info = visible_text(shown), None
    return record


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    tell_text(masked("".join(traceback.format_exception(kind, error, trace)).rstrip("\n")), err=True)


def _tell_of_ignored(failed: UnraisableHookArgs) -> None:
    """Report an error that Python cannot raise, from an object that is being deleted."""
    if failed.exc_value is not None:
        tell(masked(f"{failed.err_msg or 'Exception ignored in'}: {failed.object!r}"), err=True)
        _tell(failed.exc_type, failed.exc_value, failed.exc_traceback)


def _tell_of_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None and not issubclass(failed.exc_type, SystemExit):
        name = failed.thread.name if failed.thread else "?"
        tell(f"Exception in thread {name}:", err=True)
        _tell(failed.exc_type, failed.exc_value, failed.exc_traceback)
