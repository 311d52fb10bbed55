"""A model on the loopback hub: its name, and how it is opened."""

from __future__ import annotations

import pytest

from parquetry.embed.onnx import OnnxEmbedder
from parquetry.errors import ParquetryError
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.hub import HubSettings
from tests.embed.tiny_onnx import DIMENSION

MODEL = "acme/tiny"
TOKEN = "hf_" + "opens3the4private5models6of7acme8"
DESCRIBED = {"config.json": {"hidden_size": DIMENSION, "model_type": "bert"}}
SETTINGS = EmbeddingSettings()


def opened(settings: HubSettings, name: str = MODEL) -> OnnxEmbedder:
    return OnnxEmbedder(name, SETTINGS, settings)


def refusal(settings: HubSettings, name: str = MODEL) -> ParquetryError:
    """Return the error, which is one line without the token."""
    with pytest.raises(ParquetryError) as told:
        opened(settings, name)
    assert len(str(told.value).splitlines()) == 1
    assert TOKEN not in str(told.value)
    return told.value
