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
from parquetry.settings.rerank import KEY_VARIABLE, RerankSettings
from tests.rerank.tiny_cross_encoder import build_folder
from tests.servers.chat_server import ChatServer, said
from tests.servers.rerank_server import RerankServer

TEXTS = ["kiln dry", "lunch", "walnut kiln"]


@pytest.fixture(params=["onnx", "llm", "service"])
def reranker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reranker]:
    if request.param == "onnx":
        yield open_reranker(f"onnx:{build_folder(tmp_path)}", LlmSettings(), RerankSettings())
        return
    if request.param == "service":
        with RerankServer("tei", [[0.5, 0.1, 0.9]]) as server:
            yield open_reranker("service:m", LlmSettings(), RerankSettings(base_url=server.base_url))
        return
    judged = [{"n": 3, "score": 0.9}, {"n": 1, "score": 0.5}, {"n": 2, "score": 0.1}]
    with ChatServer([said(json.dumps({"ranking": judged}))]) as server:
        yield open_reranker("llm", LlmSettings(model="m", base_url=server.url), RerankSettings())


def test_every_reranker_gives_one_score_from_zero_to_one_per_text(reranker: Reranker) -> None:
    scores = reranker.judge("dry", TEXTS).scores
    assert (scores.shape, scores.dtype) == ((3,), np.float32)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores.argmin() == 1
    assert reranker.judge("dry", []).scores.shape == (0,)
    kind, _, model = reranker.id.partition(":")
    assert kind in {"onnx", "llm", "service"}
    assert model


def test_a_reranker_is_loaded_once(tmp_path: Path) -> None:
    name = f"onnx:{build_folder(tmp_path)}"
    first = open_reranker(name, LlmSettings(), RerankSettings())
    assert open_reranker(name, LlmSettings(), RerankSettings()) is first


def test_another_key_in_the_environment_is_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "rk-the-first-one")
    with RerankServer("jina", [[0.5], [0.5]]) as server:
        settings = RerankSettings(base_url=server.base_url)
        open_reranker("service:m", LlmSettings(), settings).judge("q", ["text"])
        monkeypatch.setenv(KEY_VARIABLE, "rk-the-second-one")
        open_reranker("service:m", LlmSettings(), settings).judge("q", ["text"])
    assert server.keys == ["Bearer rk-the-first-one", "Bearer rk-the-second-one"]


@pytest.mark.parametrize("name", ["", "cohere", "onnx", "onnx:", "llm:", "llm:gpt-4o-mini", "service", "service:"])
def test_an_unknown_name_is_an_error_with_the_choices(name: str) -> None:
    with pytest.raises(SettingsError, match=r"search\.rerank is .*choose one of: onnx:<folder>, llm, service:<model>$"):
        open_reranker(name, LlmSettings(model="m", base_url="http://127.0.0.1:9/v1"), RerankSettings())
