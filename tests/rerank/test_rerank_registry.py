"""Rerankers by name, and the contract that all of them meet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from parquetry.errors import SettingsError
from parquetry.rerank.base import Reranker
from parquetry.rerank.registry import open_reranker
from parquetry.settings.llm import LlmSettings
from tests.rerank.tiny_cross_encoder import build_folder
from tests.servers.chat_server import ChatServer, said

TEXTS = ["kiln dry", "lunch", "walnut kiln"]


@pytest.fixture(params=["onnx", "llm"])
def reranker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reranker]:
    if request.param == "onnx":
        yield open_reranker(f"onnx:{build_folder(tmp_path)}", LlmSettings())
        return
    judged = [{"n": 3, "score": 0.9}, {"n": 1, "score": 0.5}, {"n": 2, "score": 0.1}]
    with ChatServer([said(json.dumps({"ranking": judged}))]) as server:
        yield open_reranker("llm", LlmSettings(model="m", base_url=server.url))


def test_every_reranker_gives_one_score_from_zero_to_one_per_text(reranker: Reranker) -> None:
    scores = reranker.judge("dry", TEXTS).scores
    assert (scores.shape, scores.dtype) == ((3,), np.float32)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores.argmin() == 1
    assert reranker.judge("dry", []).scores.shape == (0,)
    kind, _, model = reranker.id.partition(":")
    assert kind in {"onnx", "llm"}
    assert model


def test_a_reranker_is_loaded_once(tmp_path: Path) -> None:
    name = f"onnx:{build_folder(tmp_path)}"
    assert open_reranker(name, LlmSettings()) is open_reranker(name, LlmSettings())


@pytest.mark.parametrize("name", ["", "cohere", "onnx", "onnx:", "llm:", "llm:gpt-4o-mini"])
def test_an_unknown_name_is_an_error_with_the_choices(name: str) -> None:
    with pytest.raises(SettingsError, match=r"search\.rerank is .*choose one of: onnx:<folder>, llm$"):
        open_reranker(name, LlmSettings(model="m", base_url="http://127.0.0.1:9/v1"))
