"""The OpenTelemetry SDK, sending by OTLP over HTTP; the variables `OTEL_*` say where to, as for every other program."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from parquetry.telemetry.tracing import Value

_SCOPE = "parquetry"
_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}


class OtlpSender:
    """Spans and metrics on their way to a collector."""

    def __init__(self) -> None:
        own = Resource({"service.name": _SCOPE, "service.version": version(_SCOPE)})
        resource = own.merge(OTELResourceDetector().detect())
        self._lost = _Lost()
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(BatchSpanProcessor(_Spans(OTLPSpanExporter(), self._lost)))
        reader = PeriodicExportingMetricReader(_Metrics(OTLPMetricExporter(), self._lost))
        self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._spans.get_tracer(_SCOPE)
        self._meter = self._metrics.get_meter(_SCOPE)
        self._lock = threading.Lock()
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Value], parent: Context | None, kind: str) -> Iterator[Span]:
        """Record a block as a span."""
        with self._tracer.start_as_current_span(
            name, parent, _KINDS[kind], attributes, record_exception=False, set_status_on_exception=False
        ) as begun:
            try:
                yield begun
            except BaseException as error:
                self.set_error(begun, type(error).__name__)
                raise

    def set_error(self, span: Span, kind: str) -> None:
        """Set the status of a span to an error."""
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, kind))

    def ended_span(self, name: str, began: int, attributes: Mapping[str, Value]) -> None:
        """Record a span that ends now.

        Args:
            name: of the span.
            began: nanoseconds since 1970.
            attributes: of the span.
        """
        self._tracer.start_span(name, attributes=attributes, start_time=began).end()

    def current(self) -> Context:
        """Return the context of this thread."""
        return context.get_current()

    @contextmanager
    def below(self, parent: Context) -> Iterator[None]:
        """Make a context of another thread that of this one."""
        token = context.attach(parent)
        try:
            yield
        finally:
            context.detach(token)

    def of_headers(self, headers: Mapping[str, str]) -> Context:
        """Return the context in headers; one that is not valid begins a trace of its own."""
        return TraceContextTextMapPropagator().extract(headers, Context())

    def duration(self, name: str, seconds: float, attributes: Mapping[str, Value]) -> None:
        """Add to a histogram of seconds."""
        with self._lock:
            if name not in self._histograms:
                self._histograms[name] = self._meter.create_histogram(name, "s")
        self._histograms[name].record(seconds, attributes)

    def count(self, name: str, number: float, attributes: Mapping[str, Value]) -> None:
        """Add to a counter."""
        with self._lock:
            if name not in self._counters:
                self._counters[name] = self._meter.create_counter(name)
        self._counters[name].add(number, attributes)

    def flush(self) -> None:
        """Send what is recorded."""
        self._spans.force_flush()
        self._metrics.force_flush()

    def take_lost(self) -> int:
        """Return the number of exports that failed since the last call."""
        return self._lost.take()


class _Lost:
    """Count of exports that failed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def add(self) -> None:
        with self._lock:
            self._count += 1

    def take(self) -> int:
        with self._lock:
            count, self._count = self._count, 0
            return count


class _Spans(SpanExporter):
    """Exporter of spans that counts what it does not deliver."""

    def __init__(self, exporter: SpanExporter, lost: _Lost) -> None:
        self._exporter = exporter
        self._lost = lost

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        done = self._exporter.export(spans)
        if done is not SpanExportResult.SUCCESS:
            self._lost.add()
        return done

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _Metrics(MetricExporter):
    """Exporter of metrics that counts what it does not deliver."""

    def __init__(self, exporter: OTLPMetricExporter, lost: _Lost) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter = exporter
        self._lost = lost

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object) -> MetricExportResult:
        done = self._exporter.export(metrics_data, timeout_millis, **kwargs)
        if done is not MetricExportResult.SUCCESS:
            self._lost.add()
        return done

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        self._exporter.shutdown(timeout_millis, **kwargs)
