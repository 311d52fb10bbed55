"""A collector on loopback that takes OTLP over HTTP, parses it as OpenTelemetry defines it, and refuses all else."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass
class ReceivedSpan:
    """A span as it arrived."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    error: str | None
    """message of an error status; None for any other status"""
    attributes: dict[str, Any]
    resource: dict[str, Any]
    children: list[ReceivedSpan] = field(default_factory=list)

    @property
    def tree(self) -> Any:
        """Name, and the trees of the children by name."""
        return self.name, sorted((child.tree for child in self.children), key=str)


class OtlpReceiver(LoopbackServer):
    """Keep what arrives.

    Args:
        held: set to let answers go; None to answer at once.
    """

    def __init__(self, held: threading.Event | None = None) -> None:
        self._lock = threading.Lock()
        self.held = held
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.wrong: list[str] = []
        self._spans: list[ReceivedSpan] = []
        self.metrics: dict[str, list[dict[str, Any]]] = {}
        """name -> attributes of the points that arrived"""
        receiver = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.held is not None:
                    receiver.held.wait(60)
                try:
                    receiver.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                    status = 200
                except Exception as error:  # noqa: BLE001 - told at the end of the test
                    receiver.wrong.append(f"{self.path}: {error!r}")
                    status = 400
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        super().__init__(Handler)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self.wrong:
            raise AssertionError(self.wrong)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        if headers["content-type"] != "application/x-protobuf":
            raise ValueError(headers["content-type"])
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            if path == "/v1/traces":
                self._take_spans(ExportTraceServiceRequest.FromString(body))
            elif path == "/v1/metrics":
                self._take_metrics(ExportMetricsServiceRequest.FromString(body))
            else:
                raise ValueError("no such path")

    def _take_spans(self, request: Any) -> None:
        for of_resource in request.resource_spans:
            resource = values(of_resource.resource.attributes)
            for of_scope in of_resource.scope_spans:
                if of_scope.scope.name != "parquetry":
                    raise ValueError(of_scope.scope.name)
                for span in of_scope.spans:
                    if span.events or span.end_time_unix_nano < span.start_time_unix_nano:
                        raise ValueError(span)
                    self._spans.append(
                        ReceivedSpan(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.kind,
                            span.status.message if span.status.code == 2 else None,
                            values(span.attributes),
                            resource,
                        )
                    )

    def _take_metrics(self, request: Any) -> None:
        for of_resource in request.resource_metrics:
            for of_scope in of_resource.scope_metrics:
                for metric in of_scope.metrics:
                    data = getattr(metric, metric.WhichOneof("data"))
                    self.metrics[metric.name] = [values(point.attributes) for point in data.data_points]

    @property
    def spans(self) -> list[ReceivedSpan]:
        """All spans."""
        with self._lock:
            return list(self._spans)

    @property
    def roots(self) -> list[ReceivedSpan]:
        """Spans without a parent that arrived, with their children."""
        found = self.spans
        by_id = {span.span_id: span for span in found}
        assert len(by_id) == len(found)
        for span in found:
            span.children = [each for each in found if each.parent_id == span.span_id]
            assert all(child.trace_id == span.trace_id for child in span.children)
        return [span for span in found if span.parent_id not in by_id]


def values(attributes: Any) -> dict[str, Any]:
    found = {each.key: value(each.value) for each in attributes}
    assert len(found) == len(attributes)
    return found


def value(told: AnyValue) -> Any:
    kind = told.WhichOneof("value")
    if kind == "array_value":
        return [value(each) for each in told.array_value.values]
    if kind not in ("string_value", "bool_value", "int_value", "double_value"):
        raise ValueError(kind)
    return getattr(told, kind)
