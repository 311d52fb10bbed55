"""The tool that writes: one statement, compared with what is known before it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquetry.serving.mcp import arguments as forms
from parquetry.serving.mcp.outcome import ToolOutcome, failure
from parquetry.serving.mcp.visit import Visit
from parquetry.serving.mcp.wording import quoted
from parquetry.serving.service.remembering import RememberedStatement, StatementFailed

_SAID = {
    "new": "Remembered: nothing like it was known.",
    "existing": "This was known already.",
    "merged": "Remembered: it was merged with what was known, into the statement below.",
    "contradicts": "Remembered. It contradicts what was known, which stays, too: tell the user.",
}
"""decision -> sentence for the model"""


async def remember(visit: Visit, asked: forms.Remember) -> ToolOutcome:
    """Remember a statement, and tell what became of it."""
    if visit.memory is None:
        raise RuntimeError("the tool is not listed without a memory")
    namespace = visit.own_namespace(asked.namespace)
    record = visit.record("knowledge.ingest", namespace)
    try:
        done = await visit.memory.remember(namespace, asked.text, asked.level)
    except StatementFailed as error:
        return failure(f"not remembered: {error.reason}: {error.detail}")
    if done.decision is None:
        structured = _structured(done, {"status": "pending"})
        return ToolOutcome(f"This takes longer; what becomes of it is told at {done.job}.", structured)
    decision = done.decision
    record.write(documents=0, chunks=int(decision["status"] in ("new", "merged", "contradicts")))
    if decision["status"] not in _SAID:
        return failure(f"not remembered: {decision['reason']}: the statement {decision['detail']}")
    return ToolOutcome(_told(decision, done.level), _structured(done, decision))


def _told(decision: Mapping[str, Any], level: str) -> str:
    parts = [f"{_SAID[decision['status']]} (entry {decision['entry_id']}, visible to: {level})"]
    if decision["text"]:
        parts.append(quoted(decision["text"]))
    if decision["contradicts"]:
        parts += ["Known before:", *(quoted(each) for each in decision["contradicts"])]
    return "\n".join(parts)


def _structured(done: RememberedStatement, decision: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "status": decision["status"],
        "level": done.level,
        "entry_id": decision.get("entry_id"),
        "text": decision.get("text"),
        "contradicts": list(decision.get("contradicts") or ()),
        "job": done.job,
    }
