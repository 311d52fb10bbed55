"""Exported sentence-transformers models."""

from knowledge.embed.base import Embedder
from knowledge.settings import EmbeddingSettings


def OnnxEmbedder(folder: str, settings: EmbeddingSettings) -> Embedder:
    raise NotImplementedError


def embedder_id(folder: str, settings: EmbeddingSettings) -> str:
    raise NotImplementedError
