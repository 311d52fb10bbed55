"""Conditions that a vector must meet to be stored."""

from __future__ import annotations

import numpy as np
import pytest

from parquetry.embed.checks import in_order, same_dimension, unit_rows
from parquetry.embed.registry import embedder_id, open_embedder
from parquetry.errors import SettingsError, TransientError
from parquetry.settings.embedding import EmbeddingSettings


def test_rows_are_scaled_to_length_one_whatever_their_scale() -> None:
    """Squares of the first overflow in float32, those of the last vanish."""
    vectors = np.array([[3e38, 3e38], [3, 4], [1e-30, 0]], np.float32)
    assert unit_rows(vectors) == {}
    np.testing.assert_allclose(vectors, [[0.5**0.5, 0.5**0.5], [0.6, 0.8], [1, 0]], atol=1e-6)


def test_rows_without_direction_become_zeros_with_a_reason() -> None:
    vectors = np.array([[0, 0], [np.nan, 1], [1, -np.inf], [3, 4]], np.float32)
    refused = unit_rows(vectors)
    assert {row: reason.partition(":")[0] for row, reason in refused.items()} == {
        0: "zero-vector",
        1: "not-finite",
        2: "not-finite",
    }
    np.testing.assert_allclose(vectors, [[0, 0], [0, 0], [0, 0], [0.6, 0.8]], atol=1e-6)


def test_an_empty_table_is_in_order() -> None:
    assert unit_rows(np.zeros((0, 4), np.float32)) == {}
    assert in_order([], 0).tolist() == []


def test_answers_are_placed_by_their_index() -> None:
    assert in_order([2, 0, 1], 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("indices", [[0, 1], [0, 1, 2, 3], [0, 1, 1], [0, 1, 3], [0, 1, -1]])
def test_a_missing_doubled_or_foreign_answer_is_a_bad_reply(indices: list[int]) -> None:
    with pytest.raises(TransientError) as caught:
        in_order(indices, 3)
    assert caught.value.reason == "bad-reply"


def test_another_dimension_stops_the_run() -> None:
    same_dimension(3, 3, "m")
    with pytest.raises(SettingsError, match="m answers with vectors of 4 numbers where 3"):
        same_dimension(4, 3, "m")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("word2vec", "wordllama, openai:<model>, onnx:<folder>"),
        ("", "wordllama, openai:<model>, onnx:<folder>"),
        ("openai", "openai needs a model after the colon"),
        ("openai:", "openai needs a model after the colon"),
        ("onnx", "onnx needs a folder or a model of the hub after the colon"),
        ("wordllama:", "wordllama takes nothing after its name"),
        ("wordllama:512", "wordllama takes nothing after its name"),
    ],
)
def test_a_name_that_is_no_embedder_is_answered_with_the_choices(name: str, message: str) -> None:
    for ask in (open_embedder, embedder_id):
        with pytest.raises(SettingsError, match=message):
            ask(name, EmbeddingSettings())
