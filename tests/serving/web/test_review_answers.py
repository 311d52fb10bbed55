"""Answers about merges: the run that asked goes on after the last one, or the answer is not taken."""

from types import SimpleNamespace

import pytest

from parquetry.errors import TransientError
from parquetry.model import Access
from parquetry.serving.access.principals import OPERATOR
from parquetry.serving.jobs import store as queue
from parquetry.serving.jobs.reviews import ReviewStore
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.web.reviews import answer_review
from parquetry.sessions.merge.effects import MergeProposal


@pytest.fixture
def parts(tmp_path):
    parts = SimpleNamespace(jobs=JobStore(tmp_path), reviews=ReviewStore(tmp_path))
    yield parts
    parts.jobs.close()
    parts.reviews.close()


def test_answer_that_the_queue_has_no_room_for_can_be_given_again(parts, monkeypatch):
    asking = parts.jobs.submit("sessions", "default", {"review": True}, {})
    proposal = MergeProposal(
        "k", "file:///s", "Ash is hard.", ("Ash.",), "Ash is hard.", "why", "default", Access(), None
    )
    parts.reviews.ask(asking.id, [proposal])
    with monkeypatch.context() as patched:
        patched.setattr(queue, "MOST_QUEUED", 1)
        with pytest.raises(TransientError, match="jobs wait"):
            answer_review(parts, OPERATOR, asking.id, "k", "approved")
    job = answer_review(parts, OPERATOR, asking.id, "k", "approved")
    assert job.payload["review_of"] == asking.id
