"""A queue of jobs over a real corpus."""

import pytest

from tests.servers.embedding_server import EmbeddingServer, embeddings, refusal
from tests.serving.jobs.desk import Desk


@pytest.fixture
def jobs(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.fixture
def served(tmp_path):
    """Return a desk whose embedding service can be turned off."""
    state = {"up": True}

    def answer(request):
        return embeddings(request) if state["up"] else refusal(503, "down for today")

    with EmbeddingServer(answer) as server:
        embedding = {"base_url": server.url, "api_key": "x", "dimension": 8, "attempts": 1}
        desk = Desk(tmp_path, corpus={"embedder": "openai:m"}, embedding=embedding, refresh={"attempts": 1})
        yield desk, state
        desk.close()
