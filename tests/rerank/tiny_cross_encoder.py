"""A cross-encoder in the form of common exports, small enough for its scores to be worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WEIGHTS = {
    # Padding that is wrongly counted shows.
    "[PAD]": 1000.0,
    "[CLS]": 0.25,
    "[SEP]": -0.25,
    "[UNK]": 0.0,
    "kiln": 1.0,
    "dry": 0.5,
    "walnut": 0.25,
    "lunch": -1.5,
    "menu": -1.0,
}
"""word -> its addend to the logit as a word of the query; a word of the text adds twice that"""
IDS = {word: number for number, word in enumerate(WEIGHTS)}


def logit(query: str, text: str) -> float:
    """Return the model's logit when nothing is truncated, special tokens of the pair included."""
    first = ["[CLS]", *query.split(), "[SEP]"]
    second = [*text.split(), "[SEP]"]
    return sum(WEIGHTS[word] for word in first) + 2 * sum(WEIGHTS[word] for word in second)


def probability(query: str, text: str) -> float:
    return 1 / (1 + math.exp(-logit(query, text)))


def build_folder(
    folder: Path,
    *,
    place: str = "model.onnx",
    input_names: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids"),
    input_type: int = TensorProto.INT64,
    output: str = "one logit",
    files: dict[str, Any] | None = None,
) -> str:
    """Write the model, its tokenizer and `files` (path -> JSON value); return the folder.

    Args:
        folder: target folder.
        place: path of the model in it.
        input_names: input names; without `token_type_ids` a text word counts as much as a query word, without
            `attention_mask` padding counts.
        input_type: data type of all inputs.
        output: `one logit`, `flat logit`, `two classes`, `three classes`, `not a number`, `per token`.
        files: additional files.
    """
    inputs = [helper.make_tensor_value_info(name, input_type, ["pairs", "tokens"]) for name in input_names]
    nodes = [helper.make_node("Gather", ["weights", "input_ids"], ["each"])]
    if "attention_mask" in input_names:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["each", "mask"], ["visible"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["each"], ["visible"]))
    if "token_type_ids" in input_names:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["types", "one"], ["factor"]),
            helper.make_node("Mul", ["visible", "factor"], ["counted"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["visible"], ["counted"]))
    nodes.append(helper.make_node("ReduceSum", ["counted", "axis"], ["sum"], keepdims=1))
    last, shape = _LAST[output]
    nodes += [helper.make_node(kind, list(given), [made], **more) for kind, given, made, more in last]
    constants = [
        numpy_helper.from_array(np.array(list(WEIGHTS.values()), np.float32), "weights"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
        numpy_helper.from_array(np.array(1, np.float32), "one"),
        numpy_helper.from_array(np.array(-1, np.float32), "minus"),
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / place)
    _tokenizer().save(str(folder / "tokenizer.json"))
    for path, value in (files or {}).items():
        (folder / path).write_text(json.dumps(value), "utf-8")
    return str(folder)


_LAST: dict[str, tuple[list[tuple[str, tuple[str, ...], str, dict[str, int]]], list[str | int]]] = {
    "one logit": ([("Identity", ("sum",), "logits", {})], ["pairs", 1]),
    "flat logit": ([("Squeeze", ("sum", "axis"), "logits", {})], ["pairs"]),
    # "no" gets minus the sum, so that "yes" is the sigmoid of twice the sum.
    "two classes": (
        [("Mul", ("sum", "minus"), "no", {}), ("Concat", ("no", "sum"), "logits", {"axis": 1})],
        ["pairs", 2],
    ),
    "three classes": ([("Concat", ("sum", "sum", "sum"), "logits", {"axis": 1})], ["pairs", 3]),
    "not a number": ([("Sub", ("sum", "sum"), "zero", {}), ("Div", ("zero", "zero"), "logits", {})], ["pairs", 1]),
    "per token": ([("Unsqueeze", ("counted", "axis"), "logits", {})], ["pairs", 1, "tokens"]),
}
"""output -> nodes that derive it from the sum, and its shape"""


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(IDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", IDS["[CLS]"]), ("[SEP]", IDS["[SEP]"])],
    )
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]"])
    # Exports often include these.
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=5)
    return tokenizer
