"""Visits: who calls a tool, and what of the service the call may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from parquetry.serving.access.audit import Event
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused
from parquetry.serving.service.follower import CorpusFollower
from parquetry.serving.service.remembering import StatementMemory
from parquetry.settings.sections import Settings
from parquetry.storage.search.searcher import Hit


class CallRecord(Protocol):
    """Record of one call, written when it was answered."""

    def answered(self, hits: Sequence[Hit], queries: Sequence[str]) -> None:
        """Record an answer of chunks."""

    def write(self, **counts: Any) -> None:
        """Record the event with its counts."""


class Unrecorded:
    """Record of nothing: on standard streams, the caller is the operator."""

    def answered(self, hits: Sequence[Hit], queries: Sequence[str]) -> None:
        """Record nothing."""

    def write(self, **counts: Any) -> None:
        """Record nothing."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to the server."""

    settings: Settings
    follower: CorpusFollower
    principal: Principal
    named: str | None = None
    """namespace of calls that name none; None for the principal's own"""
    everywhere: bool = False
    """True if calls that name no namespace are about all that the principal sees"""
    memory: StatementMemory | None = None
    """None if nothing is remembered"""
    record: Callable[[Event, str | None], CallRecord] = lambda _event, _namespace: Unrecorded()
    """begins the record of a call in a namespace"""
    refused: Callable[[AccessRefused, str], None] = lambda _refusal, _target: None
    """records that the caller lacks a right"""

    def namespace(self, asked: str | None) -> str | None:
        """Return the namespace of a call; None for all that the principal sees.

        Raises:
            NotVisible: it does not exist for the principal.
        """
        name = asked if asked is not None else self.named
        if name is None and self.everywhere:
            return None
        return self.principal.namespace(name, self.settings.corpus.namespace)

    def own_namespace(self, asked: str | None) -> str:
        """Return the one namespace that a call writes to.

        Raises:
            NotVisible: it does not exist for the principal.
        """
        return self.principal.namespace(asked if asked is not None else self.named, self.settings.corpus.namespace)
