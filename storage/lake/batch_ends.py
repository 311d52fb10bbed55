"""The end of a batch at a service, as its record tells it to every process of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parquetry.llm.spending import Usage
from parquetry.masking import masked

NOT_DONE = frozenset({"dropped", "never-sent"})
"""statuses of batches that were given up, whose requests are free"""
REFUSED = frozenset({"failed", "refused"})
"""statuses of batches that a service refused as a whole, before or after it had taken them"""


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """The outcome of a batch."""

    run_id: str
    """run that recorded it, and counts the cost"""
    status: str
    """of the batch at the service; `refused` if it took none, or one of `NOT_DONE`"""
    requests: int = 0
    answered: int = 0
    """requests with a result"""
    duplicates: int = 0
    """results beyond the first one of a request"""
    failed: Mapping[str, int] = field(default_factory=dict)
    """code -> requests that the service could not answer"""
    paid: tuple[int, ...] = ()
    """billed tokens by source of the claim"""
    usage: Usage = field(default_factory=Usage)
    """at the price of a batch"""
    priced: bool = False
    """True if the price of the model is known"""
    parts: int = 0
    """number of shards with the results, for texts"""
    ordinary: frozenset[str] = frozenset()
    """ids of the requests that go the ordinary way"""

    @property
    def failures(self) -> str:
        """The most frequent codes, as `3 x timeout`; empty if no request failed."""
        return ", ".join(f"{count} x {masked(code)}" for code, count in Counter(self.failed).most_common(3))

    def as_record(self, batch_id: str | None) -> dict[str, Any]:
        """Return it as the record holds it, without the run.

        Args:
            batch_id: id of the batch at its service; None if that is not known.
        """
        used = self.usage
        return {
            "status": self.status,
            "batch_id": batch_id,
            "requests": self.requests,
            "answered": self.answered,
            "duplicates": self.duplicates,
            "failed": {masked(code): count for code, count in self.failed.items()},
            "tokens": used.input_tokens + used.output_tokens,
            "cost_usd": used.cost_usd if self.priced else None,
            "calls": used.calls,
            "output_tokens": used.output_tokens,
            "paid": list(self.paid),
            "parts": self.parts,
            "ordinary": sorted(self.ordinary),
        }


def end_from(told: Mapping[str, Any]) -> BatchEnd:
    """Return the end in a record; what a record of an earlier version does not tell is nothing."""
    output, cost = told.get("output_tokens", 0), told.get("cost_usd")
    usage = Usage(told.get("calls", 0), told.get("tokens", 0) - output, output, cost or 0.0)
    return BatchEnd(
        run_id=told["run_id"],
        status=told["status"],
        requests=told.get("requests", 0),
        answered=told.get("answered", 0),
        duplicates=told.get("duplicates", 0),
        failed=told.get("failed", {}),
        paid=tuple(told.get("paid", ())),
        usage=usage,
        priced=cost is not None,
        parts=told.get("parts", 0),
        ordinary=frozenset(told.get("ordinary", ())),
    )
