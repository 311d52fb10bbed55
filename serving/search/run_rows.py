"""Formatting of rows of the table `runs`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

_COUNTS = ("scanned", "added", "changed", "moved", "permissions", "unchanged", "removed", "failed", "skipped")
_SESSIONS = {"added": "new"}
"""column -> label for runs over chat sessions"""


def run_json(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run as a JSON object; counts that its kind lacks are 0."""
    return {
        "run_id": run["run_id"],
        "kind": run["kind"],
        "status": run["status"],
        "at": run["started_at"].astimezone(UTC).isoformat(),
        "seconds": run["seconds"],
        "sources": run["sources"],
        "counts": {name: run[name] or 0 for name in _COUNTS},
        "tokens": run["tokens"] or 0,
        "cost_usd": run["cost_usd"],
        "error": run["error"],
    }


def counts_of(run: Mapping[str, Any]) -> str:
    """Format counts as `2 added, 41 unchanged`; empty if the run found nothing."""
    words = _SESSIONS if run["kind"] == "sessions" else {}
    shown = (name for name in _COUNTS if name != "scanned" and run[name])
    return ", ".join(f"{run[name]} {words.get(name, name)}" for name in shown)


def outcome_of(run: Mapping[str, Any]) -> str:
    """Return the counts of a run, or the reason there are none."""
    return counts_of(run) or "nothing found" if run["status"] == "completed" else str(run["status"])
