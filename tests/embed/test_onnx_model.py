"""Texts are fed to a model in small batches with little padding."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parquetry.embed.onnx_model import by_length, padded


@given(st.lists(st.integers(1, 3000), max_size=60))
def test_batches_hold_every_text_once_from_long_to_short_within_the_limit(lengths):
    batches = list(by_length(lengths))
    order = [position for batch in batches for position in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[each] for each in order] == sorted(lengths, reverse=True)
    assert all(len(batch) == 1 or len(batch) * lengths[batch[0]] <= 2048 for batch in batches)


def test_short_texts_share_a_batch():
    assert len(list(by_length([8] * 256))) == 1


def test_padding_is_at_the_end_and_masked():
    fed = padded([[5, 6, 7], [8]], [[0, 0, 1], [1]], pad_id=9)
    assert {name: each.tolist() for name, each in fed.items()} == {
        "input_ids": [[5, 6, 7], [8, 9, 9]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
        "token_type_ids": [[0, 0, 1], [1, 0, 0]],
    }
    assert {each.dtype for each in fed.values()} == {np.dtype(np.int64)}
