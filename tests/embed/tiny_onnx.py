"""A folder as sentence-transformers exports it, with a model small enough for its vectors to be worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ("red", "green", "blue", "cat", "dog", "bird", "runs", "sleeps", "query", "passage", "Red")
VOCABULARY = {word: number for number, word in enumerate(("[PAD]", "[CLS]", "[SEP]", "[UNK]", ":", *WORDS))}
DIMENSION = 6
SOFT_HYPHEN = "\u00ad"


def token_vectors(seed: int = 0) -> np.ndarray:
    """Return float32[vocabulary, DIMENSION]; padding has large numbers, so that wrongly counting it shows."""
    vectors = np.random.default_rng(seed).normal(size=(len(VOCABULARY), DIMENSION)).astype(np.float32)
    vectors[0] = 1000
    return vectors


def expected_tokens(*words: str, seed: int = 0) -> np.ndarray:
    """Return float32[words + 2, DIMENSION]: the model's output for a text's tokens, including the two special ones."""
    return token_vectors(seed)[[VOCABULARY[word] for word in ("[CLS]", *words, "[SEP]")]]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def build_folder(
    folder: Path,
    *,
    seed: int = 0,
    place: str = "model.onnx",
    input_names: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids"),
    input_type: int = TensorProto.INT64,
    output: str = "last_hidden_state",
    files: dict[str, Any] | None = None,
) -> str:
    """Write the model, its tokenizer and `files` (path -> JSON value); return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [helper.make_tensor_value_info(name, input_type, ["texts", "tokens"]) for name in input_names]
    nodes = [helper.make_node("Gather", ["vectors", "input_ids"], ["tokens_out"])]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceMax", ["tokens_out", "axis"], [output], keepdims=0))
        shape: list[str | int] = ["texts", DIMENSION]
    else:
        nodes.append(helper.make_node("Identity", ["tokens_out"], [output]))
        shape = ["texts", "tokens", DIMENSION]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    constants = [
        numpy_helper.from_array(token_vectors(seed), "vectors"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
    ]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / place)
    _tokenizer().save(str(folder / "tokenizer.json"))
    for path, value in (files or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(value), "utf-8")
    return str(folder)


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Replace(SOFT_HYPHEN, "")
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])]
    )
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]"])
    # Exports often include these; they must not shorten a text.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    return tokenizer
