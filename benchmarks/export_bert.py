"""Export of a sentence-transformers model of the BERT family to ONNX, from the weights in its folder.

    python -m benchmarks.export_bert FOLDER

Export usually needs PyTorch; this needs only `onnx` and `numpy`. FOLDER holds `config.json` and
`model.safetensors`; `model.onnx` is written beside them, for the embedder `onnx:FOLDER`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

OPSET = 20
"""first ONNX opset with Gelu"""
MASKED = -1e9
"""added to the attention scores of padding"""


class _Graph:
    """Nodes and weights of a graph under construction."""

    def __init__(self, weights: dict[str, npt.NDArray[np.float32]], epsilon: float) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._weights = weights
        self._epsilon = epsilon

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: npt.ArrayLike, kind: type[np.generic] = np.int64) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def weight(self, name: str, *, transposed: bool = False) -> str:
        value = self._weights[name]
        return self.constant(value.T if transposed else value, np.float32)

    def linear(self, x: str, name: str) -> str:
        product = self.add("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        return self.add("Add", product, self.weight(f"{name}.bias"))

    def normalise(self, x: str, name: str) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=self._epsilon)


def bert(config: dict[str, Any], weights: dict[str, npt.NDArray[np.float32]]) -> onnx.ModelProto:
    """Build the encoder: `input_ids` and `attention_mask` in, `last_hidden_state` out.

    Source: Devlin et al., BERT, NAACL 2019; weight names as in the library transformers.
    """
    graph = _Graph(weights, config["layer_norm_eps"])
    length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.constant([1]))
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    places = graph.add("Slice", graph.weight("embeddings.position_embeddings.weight"), graph.constant([0]), length)
    types = graph.constant(weights["embeddings.token_type_embeddings.weight"][0], np.float32)
    x = graph.normalise(graph.add("Add", graph.add("Add", words, places), types), "embeddings.LayerNorm")
    absent = graph.add(
        "Sub", graph.constant(1, np.float32), graph.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
    )
    masked = graph.add(
        "Mul", graph.add("Unsqueeze", absent, graph.constant([1, 2])), graph.constant(MASKED, np.float32)
    )
    for number in range(config["num_hidden_layers"]):
        x = _layer(graph, x, masked, f"encoder.layer.{number}", config)
    graph.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    shape = ["texts", "tokens"]
    asked = [
        helper.make_tensor_value_info(each, onnx.TensorProto.INT64, shape) for each in ("input_ids", "attention_mask")
    ]
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "bert",
            asked,
            [helper.make_tensor_value_info(
                "last_hidden_state", onnx.TensorProto.FLOAT, [*shape, config["hidden_size"]]
            )],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )  # fmt: skip


def _layer(graph: _Graph, x: str, masked: str, name: str, config: dict[str, Any]) -> str:
    heads, size = config["num_attention_heads"], config["hidden_size"]
    split = graph.constant([0, 0, heads, size // heads])

    def part(which: str, order: Sequence[int]) -> str:
        return graph.add(
            "Transpose", graph.add("Reshape", graph.linear(x, f"{name}.attention.self.{which}"), split), perm=order
        )

    alike = graph.add("MatMul", part("query", (0, 2, 1, 3)), part("key", (0, 2, 3, 1)))
    scaled = graph.add("Mul", alike, graph.constant((size // heads) ** -0.5, np.float32))
    shares = graph.add("Softmax", graph.add("Add", scaled, masked), axis=-1)
    seen = graph.add("Transpose", graph.add("MatMul", shares, part("value", (0, 2, 1, 3))), perm=(0, 2, 1, 3))
    joined = graph.linear(graph.add("Reshape", seen, graph.constant([0, 0, size])), f"{name}.attention.output.dense")
    x = graph.normalise(graph.add("Add", joined, x), f"{name}.attention.output.LayerNorm")
    inner = graph.add("Gelu", graph.linear(x, f"{name}.intermediate.dense"))
    return graph.normalise(graph.add("Add", graph.linear(inner, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")


def read_weights(file: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Read the float32 tensors of a safetensors file.

    Source: https://huggingface.co/docs/safetensors (eight bytes of header length, a JSON header, the numbers)
    """
    content = file.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    return {
        name: np.frombuffer(
            content[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]], np.float32
        ).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export_bert")
    parser.add_argument("folder", type=Path, help="with config.json and model.safetensors")
    folder = parser.parse_args(arguments).folder
    config = json.loads((folder / "config.json").read_text("utf-8"))
    model = bert(config, read_weights(folder / "model.safetensors"))
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
    print(f"written to {folder / 'model.onnx'}")


if __name__ == "__main__":
    main()
