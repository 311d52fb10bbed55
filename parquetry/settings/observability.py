"""Settings of metrics, logs and traces: `[observability]`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parquetry.settings.base import Section


class ObservabilitySettings(Section):
    """Metrics of runs, logs and traces."""

    textfile: str | None = Field(
        None,
        pattern=r"\.prom$",
        examples=["/var/lib/node_exporter/textfile/parquetry.prom"],
        description="File that each run replaces with metrics for the textfile collector of Prometheus' node exporter.",
    )
    log_format: Literal["text", "json"] = Field(
        "text",
        description="Lines that a service and runs write to stderr for a log: text, or one JSON object each. On a "
        "terminal, and on stdout, commands print the same with both.",
    )
    otel: bool = Field(
        False,
        description="Send traces and metrics of runs and searches to an OpenTelemetry collector. Needs the extra "
        "`otel`; the variables `OTEL_*` say where to.",
    )
