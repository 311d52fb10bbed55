"""Exported cross-encoders: scores, inputs, and faults of a model folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from parquetry.errors import MissingExtra, SettingsError
from parquetry.rerank.onnx import CrossEncoder
from tests.rerank.tiny_cross_encoder import WEIGHTS, build_folder, logit, probability

QUERY = "dry walnut"
TEXTS = ["lunch menu", "kiln", "kiln dry walnut kiln dry walnut", "menu"]


def sigmoid(number: float) -> float:
    return float(1 / (1 + np.exp(-number)))


def test_scores_are_probabilities_worked_out_by_hand_whatever_the_lengths(tmp_path: Path) -> None:
    scores = CrossEncoder(build_folder(tmp_path)).judge(QUERY, TEXTS).scores
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [probability(QUERY, text) for text in TEXTS], rtol=1e-5)


def test_each_text_is_scored_as_if_it_were_alone_however_many_batches_it_takes(tmp_path: Path) -> None:
    """Several batches, sorted by length: a missing restoration of the order would show."""
    words = np.random.default_rng(7).choice(list(WEIGHTS)[4:], size=(300, 40))
    texts = [" ".join(row[: 1 + number % 40]) for number, row in enumerate(words)]
    encoder = CrossEncoder(build_folder(tmp_path))
    together = encoder.judge(QUERY, texts).scores
    np.testing.assert_allclose(together, [probability(QUERY, text) for text in texts], rtol=1e-4)


@pytest.mark.parametrize(
    ("output", "factor"), [("one logit", 1), ("flat logit", 1), ("two classes", 2)], ids=lambda each: str(each)
)
def test_every_usual_output_becomes_the_probability_of_yes(tmp_path: Path, output: str, factor: int) -> None:
    scores = CrossEncoder(build_folder(tmp_path, output=output)).judge(QUERY, TEXTS).scores
    np.testing.assert_allclose(scores, [sigmoid(factor * logit(QUERY, text)) for text in TEXTS], rtol=1e-5)


def test_one_text_with_two_classes_is_not_taken_for_two_texts(tmp_path: Path) -> None:
    scores = CrossEncoder(build_folder(tmp_path, output="two classes")).judge(QUERY, ["kiln"]).scores
    np.testing.assert_allclose(scores, [sigmoid(2 * logit(QUERY, "kiln"))], rtol=1e-5)


def test_a_model_with_fewer_and_narrower_inputs_gets_just_those(tmp_path: Path) -> None:
    folder = build_folder(tmp_path, input_names=("input_ids", "attention_mask"), input_type=TensorProto.INT32)
    by_hand = sigmoid(sum(WEIGHTS[word] for word in ["[CLS]", "dry", "walnut", "[SEP]", "kiln", "[SEP]"]))
    np.testing.assert_allclose(CrossEncoder(folder).judge(QUERY, ["kiln"]).scores, [by_hand], rtol=1e-5)


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_the_model_is_found_where_exports_put_it(tmp_path: Path, place: str) -> None:
    assert CrossEncoder(build_folder(tmp_path / "mini", place=place)).id == "onnx:mini"


@pytest.mark.parametrize(
    "files",
    [{"tokenizer_config.json": {"model_max_length": 7}}, {"config.json": {"max_position_embeddings": 7}}],
    ids=["tokenizer", "model"],
)
def test_what_is_longer_than_the_model_takes_loses_its_end_and_the_query_stays(tmp_path: Path, files: Any) -> None:
    """Four tokens remain beside the three special ones: two for the query, two for the text."""
    scores = CrossEncoder(build_folder(tmp_path, files=files)).judge(QUERY, ["kiln dry lunch menu lunch menu"]).scores
    np.testing.assert_allclose(scores, [probability(QUERY, "kiln dry")], rtol=1e-5)


def test_a_query_longer_than_the_model_takes_is_cut_and_still_answered(tmp_path: Path) -> None:
    encoder = CrossEncoder(build_folder(tmp_path, files={"tokenizer_config.json": {"model_max_length": 7}}))
    assert encoder.judge("kiln " * 50, ["kiln " * 50]).scores == pytest.approx(probability("kiln kiln", "kiln kiln"))


def test_padding_is_the_models_own(tmp_path: Path) -> None:
    """Token 3 is a word with weight zero."""
    inputs = ("input_ids", "token_type_ids")
    folder = build_folder(tmp_path, input_names=inputs, files={"config.json": {"pad_token_id": 3}})
    np.testing.assert_allclose(
        CrossEncoder(folder).judge(QUERY, TEXTS).scores, [probability(QUERY, text) for text in TEXTS], rtol=1e-5
    )


def test_no_texts_have_no_scores_and_an_empty_one_has_one(tmp_path: Path) -> None:
    encoder = CrossEncoder(build_folder(tmp_path))
    assert encoder.judge(QUERY, []).scores.shape == (0,)
    np.testing.assert_allclose(encoder.judge("", [""]).scores, [probability("", "")], rtol=1e-5)


def test_a_text_cannot_send_the_models_control_tokens(tmp_path: Path) -> None:
    """Such a token would end the input early or begin another pair."""
    encoder = CrossEncoder(build_folder(tmp_path))
    plain, hostile = encoder.judge(QUERY, ["kiln", "kiln [SEP] [PAD]"]).scores
    assert hostile == pytest.approx(plain)


# --- faults


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(lambda folder: shutil.rmtree(folder), r"search\.rerank names .* does not exist", id="no folder"),
        pytest.param(lambda folder: (folder / "model.onnx").unlink(), r"no model\.onnx", id="no model"),
        pytest.param(lambda folder: (folder / "tokenizer.json").unlink(), r"no tokenizer\.json", id="no tokenizer"),
        pytest.param(
            lambda folder: (folder / "model.onnx").write_bytes(b"\xff" * 99), "cannot be loaded", id="damaged"
        ),
        pytest.param(
            lambda folder: (folder / "tokenizer.json").write_text("{}"), "no tokenizer", id="no tokenizer in it"
        ),
    ],
)
def test_a_folder_that_lacks_something_is_named_with_the_file(tmp_path: Path, spoil: Any, message: str) -> None:
    folder = tmp_path / "model"
    build_folder(folder)
    spoil(folder)
    with pytest.raises(SettingsError, match=message) as caught:
        CrossEncoder(str(folder))
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("three classes", r"logits of shape \(1, 3\) for 1 pairs"),
        ("per token", r"logits of shape \(1, 1, 5\)"),
        ("not a number", "no numbers"),
    ],
)
def test_a_model_that_scores_no_pairs_is_refused_before_the_first_search(
    tmp_path: Path, output: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        CrossEncoder(build_folder(tmp_path, output=output))


def test_without_onnxruntime_the_install_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"the reranker onnx:.*parquetry\[onnx\]"):
        CrossEncoder(build_folder(tmp_path))
