"""Exported models: pooling, windows, configuration in the folder, and faults of a folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from parquetry.embed.onnx import OnnxEmbedder, embedder_id
from parquetry.errors import MissingExtra, SettingsError
from parquetry.settings.embedding import EmbeddingSettings
from tests.embed.tiny_onnx import DIMENSION, SOFT_HYPHEN, build_folder, expected_tokens, unit

TEXTS = ["red cat", "green dog runs", "blue"]


def open_folder(folder: str, **settings: Any) -> OnnxEmbedder:
    return OnnxEmbedder(folder, EmbeddingSettings(**settings))


def flags(**chosen: bool) -> dict[str, Any]:
    return {"1_Pooling/config.json": {f"pooling_mode_{name}": value for name, value in chosen.items()}}


@pytest.mark.parametrize(
    ("files", "pooled"),
    [
        pytest.param({}, lambda tokens: tokens.mean(axis=0), id="mean by default"),
        pytest.param(flags(mean_tokens=True, cls_token=False), lambda tokens: tokens.mean(axis=0), id="mean"),
        pytest.param(flags(cls_token=True), lambda tokens: tokens[0], id="first token"),
        pytest.param(flags(lasttoken=True), lambda tokens: tokens[-1], id="last token"),
        pytest.param(flags(max_tokens=True), lambda tokens: tokens.max(axis=0), id="largest"),
        pytest.param({"1_Pooling/config.json": {"pooling_mode": "cls"}}, lambda tokens: tokens[0], id="by name"),
        pytest.param(
            {
                "modules.json": [
                    {"path": "", "type": "sentence_transformers.models.Transformer"},
                    {"path": "9_Pool", "type": "sentence_transformers.models.Pooling"},
                ],
                "9_Pool/config.json": {"pooling_mode_cls_token": True},
            },
            lambda tokens: tokens[0],
            id="where modules.json says",
        ),
    ],
)
def test_tokens_are_pooled_as_the_folder_says_and_padding_never_counts(tmp_path: Path, files: Any, pooled: Any) -> None:
    embedded = open_folder(build_folder(tmp_path, files=files)).embed(TEXTS)
    by_hand = [unit(pooled(expected_tokens(*text.split()))) for text in TEXTS]
    np.testing.assert_allclose(embedded.vectors, by_hand, atol=1e-6)
    assert list(embedded.token_counts) == [4, 5, 3]
    assert embedded.tokens == 12


def test_a_model_that_pools_by_itself_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = build_folder(tmp_path, output="sentence_embedding", files={"sentence_bert_config.json": {}})
    (vector,) = open_folder(folder).embed(["red cat"]).vectors
    np.testing.assert_allclose(vector, unit(expected_tokens("red", "cat").max(axis=0)), atol=1e-6)


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_the_model_is_found_where_exports_put_it(tmp_path: Path, place: str) -> None:
    assert open_folder(build_folder(tmp_path, place=place)).dimension == DIMENSION


def test_a_model_with_fewer_and_narrower_inputs_gets_just_those(tmp_path: Path) -> None:
    folder = build_folder(tmp_path, input_names=("input_ids", "attention_mask"), input_type=TensorProto.INT32)
    (vector,) = open_folder(folder).embed(["blue"]).vectors
    np.testing.assert_allclose(vector, unit(expected_tokens("blue").mean(axis=0)), atol=1e-6)


def test_a_text_longer_than_the_model_takes_is_averaged_over_windows_and_not_cut_off(tmp_path: Path) -> None:
    """Truncated text cannot be found."""
    folder = build_folder(tmp_path, files={"sentence_bert_config.json": {"max_seq_length": 4}})
    embedder = open_folder(folder)
    embedded = embedder.embed(["red cat runs", "blue"])
    first, second = expected_tokens("red", "cat"), expected_tokens("runs")
    by_hand = unit(unit(first.mean(axis=0)) * 4 + unit(second.mean(axis=0)) * 3)
    np.testing.assert_allclose(embedded.vectors[0], by_hand, atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("red cat runs"), by_hand, atol=1e-6)
    assert list(embedded.token_counts) == [7, 3]


@pytest.mark.parametrize(
    ("files", "window"),
    [
        ({"sentence_bert_config.json": {"max_seq_length": 5}, "tokenizer_config.json": {"model_max_length": 9}}, 5),
        ({"tokenizer_config.json": {"model_max_length": 6}}, 6),
        ({"tokenizer_config.json": {"model_max_length": 10**30}, "config.json": {"max_position_embeddings": 8}}, 8),
        ({"config.json": {"max_position_embeddings": 10, "pad_token_id": 1, "type_vocab_size": 1}}, 8),
    ],
    ids=["the smaller of two", "the tokenizer's", "the model's positions", "positions counted from the padding"],
)
def test_the_longest_input_is_what_the_folder_says(tmp_path: Path, files: Any, window: int) -> None:
    embedder = open_folder(build_folder(tmp_path, files=files))
    fits, too_long = "red " * (window - 2), "red " * (window - 1)
    assert list(embedder.embed([fits, too_long]).token_counts) == [window, window + 3]


def test_the_tokenizer_counts_whole_texts_although_the_export_cuts_them(tmp_path: Path) -> None:
    """This count determines chunk sizes; a count that stops at the export's limit would let chunks grow without end."""
    from tokenizers import Tokenizer

    embedder = open_folder(build_folder(tmp_path))
    assert embedder.count_tokens(["red cat runs " * 10, "", "red"]) == [30, 0, 1]
    assert len(Tokenizer.from_str(embedder.tokenizer_json).encode("red " * 30, add_special_tokens=False).ids) == 30


def test_the_models_own_prompts_are_used_unless_the_settings_have_others(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": None}
    folder = build_folder(tmp_path, files={"config_sentence_transformers.json": prompts})
    embedder = open_folder(folder)
    (vector,) = embedder.embed(["red"]).vectors
    np.testing.assert_allclose(vector, unit(expected_tokens("passage", ":", "red").mean(axis=0)), atol=1e-6)
    query = embedder.embed_query("red")
    np.testing.assert_allclose(query, unit(expected_tokens("query", ":", "red").mean(axis=0)), atol=1e-6)
    other = open_folder(folder, document_prefix="cat ", query_prefix="dog ")
    np.testing.assert_allclose(
        other.embed(["red"]).vectors[0], unit(expected_tokens("cat", "red").mean(axis=0)), atol=1e-6
    )
    assert other.id != embedder.id


def test_texts_are_lower_cased_if_the_folder_says_so(tmp_path: Path) -> None:
    plain = open_folder(build_folder(tmp_path / "plain")).embed(["Red", "red"]).vectors
    folder = build_folder(tmp_path / "lower", files={"sentence_bert_config.json": {"do_lower_case": True}})
    lower = open_folder(folder).embed(["Red", "red"]).vectors
    assert abs(plain[0] - plain[1]).max() > 0.1
    np.testing.assert_array_equal(lower[0], lower[1])


def test_a_text_of_which_the_tokenizer_leaves_nothing_is_refused(tmp_path: Path) -> None:
    embedder = open_folder(build_folder(tmp_path))
    embedded = embedder.embed(["red", SOFT_HYPHEN])
    assert embedded.refused[1].startswith("no-tokens: ")
    assert not embedded.vectors[1].any()
    assert not embedder.embed_query(SOFT_HYPHEN).any()


def test_a_document_that_writes_about_control_tokens_is_text_like_any_other(tmp_path: Path) -> None:
    embedder = open_folder(build_folder(tmp_path))
    (vector,) = embedder.embed(["[SEP]"]).vectors
    np.testing.assert_allclose(vector, unit(expected_tokens("[UNK]", "[UNK]", "[UNK]").mean(axis=0)), atol=1e-6)


def test_a_batch_larger_than_one_run_of_the_model_keeps_its_order(tmp_path: Path) -> None:
    texts = [" ".join(["cat"] * (1 + number % 40) + ["dog"] * (number % 7)) for number in range(1500)]
    embedder = open_folder(build_folder(tmp_path))
    embedded = embedder.embed(texts)
    for number in (0, 1, 39, 777, 1023, 1024, 1499):
        np.testing.assert_allclose(embedded.vectors[number], embedder.embed_query(texts[number]), atol=1e-5)


# --- ids


def test_a_model_that_moves_keeps_its_id_and_another_model_in_its_place_does_not(tmp_path: Path) -> None:
    """Moving a folder must not cost a new embedding of the corpus."""
    here = build_folder(tmp_path / "here", files={"config.json": {"hidden_size": DIMENSION, "model_type": "bert"}})
    shutil.copytree(here, tmp_path / "there")
    settings = EmbeddingSettings()
    before = embedder_id(here, settings)
    assert before == embedder_id(str(tmp_path / "there"), settings) == OnnxEmbedder(here, settings).id
    assert before is not None
    assert before.startswith("onnx:bert-")
    assert before.endswith(f"/1@{DIMENSION}")
    build_folder(tmp_path / "here", seed=1)
    assert embedder_id(here, settings) != before


@pytest.mark.parametrize(
    "change",
    [{"document_prefix": "passage: "}, {"dimension": 4}, {"max_input_tokens": 5}],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_vectors_changes_the_id(tmp_path: Path, change: Any) -> None:
    folder = build_folder(tmp_path, files={"config.json": {"hidden_size": DIMENSION}})
    changed = EmbeddingSettings(**change)
    assert embedder_id(folder, changed) != embedder_id(folder, EmbeddingSettings())
    assert embedder_id(folder, changed) == OnnxEmbedder(folder, changed).id


def test_a_folder_that_does_not_tell_the_dimension_has_no_id_before_it_is_opened(tmp_path: Path) -> None:
    folder = build_folder(tmp_path)
    assert embedder_id(folder, EmbeddingSettings()) is None
    assert open_folder(folder).id.endswith(f"@{DIMENSION}")


def test_a_shorter_dimension_keeps_the_first_numbers(tmp_path: Path) -> None:
    (vector,) = open_folder(build_folder(tmp_path), dimension=4).embed(["red cat"]).vectors
    np.testing.assert_allclose(vector, unit(expected_tokens("red", "cat").mean(axis=0)[:4]), atol=1e-6)


# --- faults


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(lambda folder: shutil.rmtree(folder), "does not exist", id="no folder"),
        pytest.param(lambda folder: (folder / "model.onnx").unlink(), "no model.onnx", id="no model"),
        pytest.param(lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json", id="no tokenizer"),
        pytest.param(
            lambda folder: (folder / "model.onnx").write_bytes(b"\xff" * 99), "model.onnx", id="damaged model"
        ),
        pytest.param(
            lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer.json cannot", id="damaged tokenizer"
        ),
        pytest.param(
            lambda folder: (folder / "tokenizer.json").write_text('{"model": 3}'),
            "is no tokenizer",
            id="not a tokenizer",
        ),
        pytest.param(
            lambda folder: (folder / "config.json").write_text("]"), "config.json cannot", id="damaged config"
        ),
        pytest.param(
            lambda folder: (folder / "config.json").write_text("[]"), "JSON dict", id="config of another kind"
        ),
    ],
)
def test_a_folder_that_lacks_something_is_named_with_the_file(tmp_path: Path, spoil: Any, message: str) -> None:
    folder = tmp_path / "model"
    build_folder(folder)
    spoil(folder)
    with pytest.raises(SettingsError, match=message):
        open_folder(str(folder))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"modules.json": [{"type": "sentence_transformers.models.Dense"}]}, "Dense", id="dense layer"),
        pytest.param(flags(weightedmean_tokens=True), "pools its tokens", id="unknown pooling"),
        pytest.param(flags(mean_tokens=True, cls_token=True), "pools its tokens", id="two poolings"),
        pytest.param({"config.json": {"hidden_size": 99}}, "6 numbers where 99", id="another dimension"),
    ],
)
def test_a_model_that_needs_what_we_do_not_do_is_not_used_wrongly(tmp_path: Path, files: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        open_folder(build_folder(tmp_path, files=files))


def test_a_model_with_inputs_that_no_text_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="pixel_values"):
        open_folder(build_folder(tmp_path, input_names=("input_ids", "pixel_values")))


def test_several_models_in_a_folder_are_not_guessed_between(tmp_path: Path) -> None:
    build_folder(tmp_path, place="a.onnx")
    with pytest.raises(SettingsError, match=r"a\.onnx, b\.onnx"):
        open_folder(build_folder(tmp_path, place="b.onnx"))


def test_a_dimension_longer_than_the_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="gives vectors of 6"):
        open_folder(build_folder(tmp_path), dimension=7)


def test_without_onnxruntime_the_install_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"parquetry\[onnx\]"):
        open_folder(build_folder(tmp_path))
