"""Spans and metrics for OpenTelemetry; nothing is imported, and nothing done, unless the settings say so.

The providers are this module's own, not the process's: what libraries record with theirs, as Prefect does, is not sent.
Attributes hold names, counts and seconds, never texts, queries, addresses or messages.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from parquetry.errors import MissingExtra
from parquetry.masking import masked
from parquetry.settings.observability import ObservabilitySettings

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from parquetry.telemetry.otlp import OtlpSender

P = ParamSpec("P")
R = TypeVar("R")

EXTRA = "otel"
FLUSH_SECONDS = 5.0
"""longest time that the end of a run or a command waits for the collector"""
Value = str | int | float | bool | list[str]
_lock = threading.Lock()
_pipeline: OtlpSender | None = None
_sending: threading.Thread | None = None
"""the last flush"""


def start_tracing(settings: ObservabilitySettings) -> bool:
    """Begin to send spans and metrics if the settings say so; return True if they are sent.

    Raises:
        MissingExtra: the packages are not installed.
    """
    global _pipeline
    if not settings.otel:
        return False
    with _lock:
        if _pipeline is None:
            try:
                from parquetry.telemetry.otlp import OtlpSender
            except ImportError as error:
                raise MissingExtra(EXTRA, "observability.otel") from error
            # Its lines about a collector that is away would go to the terminal; what was lost is counted instead.
            logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
            _pipeline = OtlpSender()
            atexit.register(flush)
    return True


def is_on() -> bool:
    """Return True if spans and metrics are sent."""
    return _pipeline is not None


@contextmanager
def span(
    name: str, attributes: Mapping[str, Value] | None = None, parent: Context | None = None, *, kind: str = "internal"
) -> Iterator[Span | None]:
    """Record a block as a span; an error that leaves it is the span's status, by its type alone.

    Args:
        name: of the span.
        attributes: known at its begin.
        parent: context from `current` of another thread, or from headers; None for that of this thread.
        kind: internal, server or client.

    Yields:
        The span, for further attributes; None if nothing is recorded.
    """
    if _pipeline is None:
        yield None
        return
    with _pipeline.span(name, attributes or {}, parent, kind) as begun:
        yield begun


@contextmanager
def model_request(operation: str, model: str) -> Iterator[Callable[[int, int], None]]:
    """Record one request to a model as a span.

    Args:
        operation: embeddings, chat or rerank.
        model: name of the model.

    Yields:
        A function that notes the tokens of the request and of the reply.
    """
    # The names are OpenTelemetry's own for models: gen_ai.
    labels = {"gen_ai.operation.name": operation, "gen_ai.request.model": masked(model)} if is_on() else {}
    with span("parquetry.model.request", labels, kind="client") as begun:

        def used(input_tokens: int, output_tokens: int) -> None:
            if begun is not None:
                begun.set_attribute("gen_ai.usage.input_tokens", input_tokens)
                begun.set_attribute("gen_ai.usage.output_tokens", output_tokens)

        yield used


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function for another thread, whose spans are below the current one of this thread."""
    parent = current()
    if parent is None:
        return function

    def below(*arguments: P.args, **named: P.kwargs) -> R:
        assert _pipeline is not None  # noqa: S101 - it stays once it is there
        with _pipeline.below(parent):
            return function(*arguments, **named)

    return below


def batch_attributes(number: int, items: int) -> Mapping[str, Value]:
    """Return the attributes of the span of a batch.

    Args:
        number: 0-based position in the run.
        items: number of its documents or sessions.
    """
    return {"parquetry.batch.number": number, "parquetry.batch.items": items}


def current() -> Context | None:
    """Return the context of this thread, as the parent of spans in other threads."""
    return None if _pipeline is None else _pipeline.current()


def of_headers(headers: Mapping[str, str]) -> Context | None:
    """Return the context that a caller sent, by the headers of W3C Trace Context."""
    return None if _pipeline is None else _pipeline.of_headers(headers)


def ended_span(name: str, seconds: float, attributes: Mapping[str, Value]) -> None:
    """Record a span that has just ended, below the current one."""
    if _pipeline is not None:
        _pipeline.ended_span(name, time.time_ns() - int(seconds * 1e9), attributes)


def set_error(span: Span, kind: str) -> None:
    """Set the status of a span to an error.

    Args:
        span: from `span`.
        kind: type of the error, or status of a response; never a message, which may name anything.
    """
    if _pipeline is not None:
        _pipeline.set_error(span, kind)


def duration(name: str, seconds: float, attributes: Mapping[str, Value]) -> None:
    """Add to a histogram of seconds."""
    if _pipeline is not None:
        _pipeline.duration(name, seconds, attributes)


def count(name: str, number: float, attributes: Mapping[str, Value]) -> None:
    """Add to a counter."""
    if _pipeline is not None and number:
        _pipeline.count(name, number, attributes)


def flush() -> int:
    """Send what is recorded, for a bounded time.

    Returns:
        Number of exports that failed, or did not finish, since the last flush.
    """
    global _sending
    pipeline = _pipeline
    if pipeline is None:
        return 0
    # A collector that let one flush wait is not waited for again.
    if _sending is None or not _sending.is_alive():
        _sending = threading.Thread(target=pipeline.flush, name="otel-flush", daemon=True)
        _sending.start()
        _sending.join(FLUSH_SECONDS)
    return pipeline.take_lost() + _sending.is_alive()
