"""Jobs as pages show them: what they are about, how far they are, and what became of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from parquetry.plural import counted
from parquetry.reasons import REASONS
from parquetry.serving.jobs.model import Job
from parquetry.serving.web.repairs import repair_of

NAMES: Mapping[str, str] = {
    "refresh": "Refresh",
    "reindex": "Reindex",
    "sessions": "Learning from sessions",
    "restore": "Restore",
    "plan": "Plan",
    "undo": "Undo",
    "ingest": "Added documents",
    "remove": "Removal",
    "clear": "Removal of uploads",
    "analyze": "Analysis",
    "reinstate": "Undoing of a deletion",
}
"""kind of a job, or of a run -> its name on pages"""
_STAGES: Mapping[str, str] = {
    "scanning": "Listing the sources",
    "documents": "Reading and indexing",
    "sessions": "Learning from sessions",
    "publishing": "Publishing",
    "published": "Bringing the search index up to date",
    "facts": "Collecting what is known of documents",
    "comparing": "Comparing documents",
    "drawing": "Drawing the map",
}


@dataclass(frozen=True, slots=True)
class ShownProgress:
    """Progress of a running job."""

    stage: str
    done: int
    total: int
    """0 before it is known"""
    counts: tuple[str, ...]
    """work done so far, in words"""
    slow: str
    """document that takes long; empty if none does"""


@dataclass(frozen=True, slots=True)
class ShownJob:
    """A job."""

    id: str
    kind: str
    name: str
    subject: str
    """its subject, in a few words"""
    state: str
    is_final: bool
    progress: ShownProgress | None
    created_at: datetime
    started_at: datetime | None
    seconds: float | None
    """since it began, or that it took"""
    reason: str
    detail: str
    explanation: str
    repair: str
    cancel_asked: bool
    flow_run: str
    """name of its flow run on Prefect; empty if there is none"""
    flow_run_url: str
    """page of the flow run; empty if it is not known"""
    result: Mapping[str, Any]
    payload: Mapping[str, Any]


def shown_job(job: Job, *, cancel_asked: bool = False) -> ShownJob:
    """Return a job as a page shows it."""
    told: Mapping[str, Any] = job.result or job.progress or {}
    end = job.finished_at or datetime.now(UTC)
    url = str(told.get("flow_run_url") or "")
    return ShownJob(
        id=job.id,
        kind=job.kind,
        name=NAMES[job.kind],
        subject=subject_of(job),
        state=job.state,
        is_final=job.is_final,
        progress=_progress(job.progress or {}) if job.state == "running" else None,
        created_at=job.created_at,
        started_at=job.started_at,
        seconds=None if job.started_at is None else max(0.0, (end - job.started_at).total_seconds()),
        reason=job.reason or "",
        detail=job.detail or "",
        explanation=REASONS.get(job.reason or "", ""),
        repair=_REPAIRS.get(job.reason or "", ""),
        cancel_asked=cancel_asked and job.state == "running",
        flow_run=str(told.get("flow_run") or ""),
        # A link to a page, whatever an API answered.
        flow_run_url=url if url.startswith(("http://", "https://")) else "",
        result=job.result or {},
        payload=job.payload,
    )


_REPAIRS: Mapping[str, str] = {
    "budget": "Raise the budget, and start it again; what was paid for is not paid for again.",
    "cancelled": "Nothing was published.",
    "conflict": "Start it again.",
    "disk-full": "Free space on the disk, and start it again.",
    "index-not-written": "The next search or run builds the index.",
    "interrupted": "Start it again; `parquetry doctor` and the log of the service may tell why it ended.",
    "outage": "Start it again when the service is back; what was paid for is not paid for again.",
    "refused": "If the removals are right, plan again and allow them.",
    "settings": "Correct the settings, and start the service again.",
    "storage": "`parquetry doctor` tells what is wrong with the corpus.",
}


def subject_of(job: Job) -> str:
    """Return what a job is about, in a few words."""
    payload = job.payload
    named = list(payload.get("targets") or payload.get("documents") or ())
    space = f" in {job.namespace}" if job.namespace else ""
    match job.kind:
        case "restore":
            return f"version {payload.get('version')}{space}"
        case "remove" | "reinstate":
            return counted(len(named), "document") if named else "what was deleted"
        case "analyze":
            return "all documents"
        case "undo":
            return f"decision {payload.get('decision_id')}"
        case "reindex" | "plan" if payload.get("documents"):
            what = named[0] if len(named) == 1 else counted(len(named), "document")
            return f"{'reindex of ' if job.kind == 'plan' else ''}{what}{space}"
        case "reindex":
            return f"all documents{space}"
        case "plan":
            everything = "all documents" if payload.get("run") == "reindex" else "all sources"
            return f"{payload.get('run', 'refresh')} of {', '.join(named) or everything}{space}"
    return (", ".join(named) or "all sources") + space


def _progress(told: Mapping[str, Any]) -> ShownProgress:
    stage = str(told.get("stage") or "")
    total = int(told.get("documents") or told.get("sessions") or 0)
    counts = []
    if told.get("chunks"):
        counts.append(counted(told["chunks"], "chunk"))
    if told.get("failed"):
        counts.append(f"{told['failed']} not searchable")
    if told.get("cost_usd"):
        counts.append(f"${told['cost_usd']:.4f}")
    slow = told.get("slow") or {}
    return ShownProgress(
        _STAGES.get(stage) or str(told.get("state") or "Beginning"),
        min(int(told.get("read") or 0), total),
        total,
        tuple(counts),
        f"{slow['path']} has taken {slow['seconds']:.0f} s so far" if slow else "",
    )


@dataclass(frozen=True, slots=True)
class FailedGroup:
    """Documents that failed for one reason."""

    stage: str
    reason: str
    explanation: str
    repair: str
    documents: int
    shown: tuple[FailedDocument, ...]
    """the first of them"""
    status: str
    """failed or skipped"""


@dataclass(frozen=True, slots=True)
class FailedDocument:
    """A document that failed."""

    id: str
    """empty for a place that could not be listed"""
    name: str
    detail: str
    attempts: int


def group(
    stage: str, reason: str, documents: int, shown: tuple[FailedDocument, ...] = (), status: str = "failed"
) -> FailedGroup:
    """Return documents that failed for one reason, with what to do."""
    return FailedGroup(stage, reason, REASONS.get(reason, ""), repair_of(reason), documents, shown, status)
