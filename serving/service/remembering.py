"""Statements that a caller asks to remember, for the service and for a corpus in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from parquetry.model import Access, Visibility
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import access_for
from parquetry.serving.jobs.model import Job
from parquetry.serving.service.awaiting import JOBS_PATH, after_wait, in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.session_inbox import Owner, keep_statement
from parquetry.serving.service.writing import submit


class StatementFailed(Exception):
    """A statement was handed in, and there is no decision about it.

    Args:
        reason: short code in kebab-case.
        detail: one sentence, and what to do.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class RememberedStatement:
    """Fate of a statement."""

    level: Visibility
    """visibility of the entry"""
    decision: Mapping[str, Any] | None
    """as `parquetry.serving.jobs.statements.StatementDecision.as_json`; None while its job goes on"""
    job: str | None = None
    """path of the job, if it was not finished in time"""


class StatementMemory(Protocol):
    """Place where statements are remembered."""

    async def remember(self, namespace: str, text: str, level: Visibility | None) -> RememberedStatement:
        """Remember a statement.

        Args:
            namespace: namespace of the entry.
            text: the statement.
            level: its visibility; None for the narrowest that fits the caller.

        Raises:
            AccessRefused: the caller may not remember this widely.
            StatementFailed: there is no decision.
            ParquetryError: nothing was published.
        """


@dataclass(frozen=True, slots=True)
class ServiceMemory:
    """Statements handed to the jobs of a service."""

    resources: Resources
    principal: Principal

    async def remember(self, namespace: str, text: str, level: Visibility | None) -> RememberedStatement:
        access = access_for(self.principal, level)
        job = await after_wait(self.resources, await in_thread(self._submitted, namespace, text, access))
        if not job.is_final:
            return RememberedStatement(access.visibility, None, f"{JOBS_PATH}/{job.id}")
        if job.state != "completed":
            raise StatementFailed(job.reason or job.state, job.detail or f"the job was {job.state}")
        return RememberedStatement(access.visibility, (job.result or {})["statement"])

    def _submitted(self, namespace: str, text: str, access: Access) -> Job:
        owner = owner_of(self.principal, access)
        file = keep_statement(self.resources.state, namespace, owner, access.visibility, text)
        payload = {
            "stated": str(file),
            "user_id": owner[0],
            "org_id": owner[1],
            "max_visibility": access.visibility,
        }
        return submit(self.resources, self.principal, "sessions", namespace, payload)


def owner_of(principal: Principal, access: Access) -> Owner:
    """Return user and organization of a session whose entries get an access."""
    return access.user_id or principal.user_id, access.org_id or principal.org_id
