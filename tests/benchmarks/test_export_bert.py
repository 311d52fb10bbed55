"""An exported model of the BERT family computes the same as its weights in NumPy."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from benchmarks import export_bert

SIZE, HEADS, INNER, WORDS, PLACES, LAYERS = 8, 2, 16, 11, 6, 2
CONFIG = {"layer_norm_eps": 1e-12, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": SIZE}


def _weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, SIZE),
        "embeddings.position_embeddings.weight": (PLACES, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
        "embeddings.LayerNorm.weight": (SIZE,),
        "embeddings.LayerNorm.bias": (SIZE,),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        linear = {f"attention.self.{part}": (SIZE, SIZE) for part in ("query", "key", "value")}
        linear |= {
            "attention.output.dense": (SIZE, SIZE),
            "intermediate.dense": (INNER, SIZE),
            "output.dense": (SIZE, INNER),
        }
        for part, shape in linear.items():
            shapes[f"{name}.{part}.weight"], shapes[f"{name}.{part}.bias"] = shape, shape[:1]
        for part in ("attention.output", "output"):
            shapes[f"{name}.{part}.LayerNorm.weight"] = shapes[f"{name}.{part}.LayerNorm.bias"] = (SIZE,)
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, value in _weights().items():
        numbers = value.tobytes()
        offsets = [len(content), len(content) + len(numbers)]
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": offsets}
        content += numbers
    described = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(described).to_bytes(8, "little") + described + content)
    export_bert.main([str(folder)])
    return folder


def _run(folder: Path, ids: list[list[int]], mask: list[list[int]]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    given = {"input_ids": np.array(ids, np.int64), "attention_mask": np.array(mask, np.int64)}
    (hidden,) = session.run(["last_hidden_state"], given)
    return hidden


def _expected(ids: list[int]) -> np.ndarray:
    """Compute the same in NumPy, for one text without padding."""
    w = _weights()

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def normalise(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True))
        return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    def by_head(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(ids), HEADS, SIZE // HEADS).transpose(1, 0, 2)

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = normalise(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        query, key, value = (by_head(linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
        alike = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(SIZE // HEADS))
        seen = (alike / alike.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), SIZE)
        x = normalise(linear(seen, f"{name}.attention.output.dense") + x, f"{name}.attention.output.LayerNorm")
        inner = linear(x, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = normalise(linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
    return x


def test_a_text_gets_the_vectors_that_its_weights_mean(folder: Path):
    assert _run(folder, [[3, 1, 4, 1]], [[1] * 4])[0] == pytest.approx(_expected([3, 1, 4, 1]), abs=1e-3)


def test_padding_changes_nothing_about_a_text(folder: Path):
    padded = _run(folder, [[3, 1, 4, 0, 0], [9, 2, 6, 5, 3]], [[1, 1, 1, 0, 0], [1] * 5])
    assert padded[0, :3] == pytest.approx(_expected([3, 1, 4]), abs=1e-3)
    assert padded[1] == pytest.approx(_expected([9, 2, 6, 5, 3]), abs=1e-3)
