"""API embedders on the loopback server that do not really sleep, and their expected vectors."""

from __future__ import annotations

import numpy as np

from parquetry.embed.openai import OpenAIEmbedder
from parquetry.llm.calls import RetryPolicy
from parquetry.settings.embedding import EmbeddingSettings
from tests.servers.embedding_server import Answer, EmbeddingServer, Reply, Request, embeddings, refusal, vector_of

NOON = 1_700_000_000.0
"""seconds since the epoch, on every clock in these tests"""


def open_on(server: EmbeddingServer, slept: list[float] | None = None, **settings: object) -> OpenAIEmbedder:
    """Open an embedder that records sleeps instead of sleeping."""
    chosen = EmbeddingSettings.model_validate({"base_url": server.url, "dimension": 8, "attempts": 4} | settings)
    slept = [] if slept is None else slept
    return OpenAIEmbedder("m", chosen, RetryPolicy(chosen.attempts, slept.append, lambda: NOON, lambda: 0.0))


def expected(texts: list[str]) -> np.ndarray:
    raw = np.array([vector_of(text) for text in texts], np.float32)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def poisoned(*words: str) -> Answer:
    """Return a service that refuses a whole request if any of its texts contains one of the words."""

    def answer(request: Request) -> Reply:
        if any(word in text for word in words for text in request.inputs):
            return refusal(400, "cannot be processed")
        return embeddings(request)

    return answer
