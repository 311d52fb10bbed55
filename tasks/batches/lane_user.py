"""The parts of a batch lane that differ between its users, and what comes of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from parquetry.llm.batch_api import BatchService
from parquetry.llm.spending import Purpose, Usage
from parquetry.storage.lake.batch_ends import BatchEnd
from parquetry.storage.lake.batches import BatchItem, Claim, OpenBatch
from parquetry.tasks.batches.record_view import Found

Result = TypeVar("Result")


def _not_kept(number: int, claim: Claim, end: BatchEnd) -> None:
    """Do nothing: results are looked up anew each time."""


@dataclass(frozen=True, slots=True)
class LaneUser(Generic[Result]):
    """The parts of a lane that differ between its users."""

    purpose: Purpose
    model: str
    """id of the embedder, or name of the language model"""
    endpoint: str
    """path that requests are for"""
    setting: str
    """key of the settings that sends work this way"""
    what: str
    """noun for a request, for messages"""
    service: BatchService
    read: Callable[[object], tuple[Result, Usage]]
    """returns the result in the body of a reply, and its usage at the price of a batch; raises for one without"""
    store: Callable[[OpenBatch, int, Sequence[tuple[BatchItem, Result]]], None]
    """stores results of a batch, with the 0-based number of this part of them; storing them again changes nothing"""
    priced: bool
    """True if the price of the model is known"""
    found: Found = _not_kept
    """receives batches of which another process may have stored the results"""


@dataclass
class BatchOutcome:
    """The outcome of a batch."""

    paid: Counter[int] = field(default_factory=Counter)
    """source of the claim -> billed tokens"""
    usage: Usage = field(default_factory=Usage)
    answered: set[str] = field(default_factory=set)
    ordinary: set[str] = field(default_factory=set)
    """requests that go the ordinary way"""
    failed: Counter[str] = field(default_factory=Counter)
    """code -> requests that the service could not answer"""
    duplicates: int = 0
    parts: int = 0
    """parts that its results were stored in"""
