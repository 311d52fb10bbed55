"""Erasure of a user from the state of a service: tokens, audit events, jobs, feedback, chats, responses and files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from parquetry.serving.access.forgetting import forget_access
from parquetry.serving.files.forgetting import forget_files
from parquetry.serving.jobs.reviews import FILE as REVIEWS
from parquetry.serving.jobs.reviews import ReviewStore
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.store import FILE as JOBS
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.service.feedback import FILE as FEEDBACK
from parquetry.serving.service.feedback import FeedbackStore
from parquetry.serving.service.response_store import FILE as RESPONSES
from parquetry.serving.service.response_store import ResponseStore
from parquetry.serving.service.session_inbox import forget_sessions


@dataclass(frozen=True, slots=True)
class ForgottenState:
    """Numbers of what was deleted."""

    tokens: int
    audit_events: int
    jobs: int
    reviews: int
    feedback: int
    sessions: int
    responses: int
    files: int

    @property
    def parts(self) -> dict[str, int]:
        """Numbers by what they count."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def named(self) -> dict[str, int]:
        """Numbers by what people call it, in the singular."""
        names = ("token", "audit event", "job", "review", "judgement", "chat", "response", "file")
        return dict(zip(names, self.parts.values(), strict=True))


def forget_in_state(state: Path, user_id: str) -> ForgottenState:
    """Delete what a service keeps of a user, while it goes on.

    Args:
        state: state folder of a service; nothing happens if there is none.
        user_id: the user.

    Raises:
        StorageError: a file cannot be written.
    """
    access = forget_access(state, user_id)
    jobs = reviews = feedback = responses = 0
    if (state / JOBS).exists():
        store = JobStore(state)
        jobs = store.forget(user_id)
        store.close()
    if (state / REVIEWS).exists():
        asked = ReviewStore(state)
        reviews = asked.forget(user_id)
        asked.close()
    if (state / FEEDBACK).exists():
        judgements = FeedbackStore(state)
        feedback = judgements.forget(user_id)
        judgements.close()
    if (state / RESPONSES).exists():
        kept = ResponseStore(state)
        responses = kept.forget(user_id)
        kept.close()
    SetAside(state).forget(user_id)
    sessions, files = forget_sessions(state, user_id), forget_files(state, user_id)
    return ForgottenState(access.tokens, access.events, jobs, reviews, feedback, sessions, responses, files)
