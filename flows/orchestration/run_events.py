"""Events of runs on the Prefect server, for automations: `parquetry.published` and others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from prefect.events import emit_event

from parquetry.errors import RefusedError
from parquetry.masking import masked
from parquetry.printing import visible

PUBLISHED, SOURCE_FAILED, REFUSED = "parquetry.published", "parquetry.source.failed", "parquetry.run.refused"
_TOLD = ("run_id", "version", "documents", "sessions", "entries", "chunks", "tokens", "cost_usd")
"""members of a report's JSON that an event of a publish repeats"""


class Published(Protocol):
    """A report of a run of any kind."""

    @property
    def version(self) -> int: ...

    @property
    def version_before(self) -> int: ...

    @property
    def outages(self) -> Sequence[str]: ...

    @property
    def failed_sources(self) -> Sequence[str]: ...

    def as_json(self) -> dict[str, Any]: ...


def emit_report(report: Published, root: str, namespaces: Collection[str]) -> None:
    """Emit the events of a run that ended with a report.

    Prefect relates each event to the flow run, its flow and its tags.

    Args:
        report: report of the run.
        root: root of the corpus.
        namespaces: namespaces of the run.
    """
    if report.version != report.version_before:
        told = report.as_json()
        counts = {name: told[name] for name in _TOLD if name in told}
        _emit(PUBLISHED, _corpus(root), namespaces, {**counts, "version_before": report.version_before})
    for source, problem in zip(report.failed_sources, report.outages, strict=True):
        resource = {"prefect.resource.id": f"parquetry.source.{_shown(source)}", "parquetry.corpus": _shown(root)}
        _emit(SOURCE_FAILED, resource, namespaces, {"source": _shown(source), "problem": problem})


def emit_refusal(error: RefusedError, root: str, namespaces: Collection[str]) -> None:
    """Emit the event of a run that a guard or a budget refused, wholly or in part."""
    _emit(REFUSED, _corpus(root), namespaces, {"problem": masked(str(error))})


def _emit(event: str, resource: dict[str, str], namespaces: Collection[str], payload: dict[str, Any]) -> None:
    emit_event(event, resource, payload={"namespaces": sorted(namespaces), **payload})


def _corpus(root: str) -> dict[str, str]:
    return {"prefect.resource.id": f"parquetry.corpus.{_shown(root)}", "prefect.resource.name": _shown(root)}


def _shown(name: str) -> str:
    return visible(masked(name))
