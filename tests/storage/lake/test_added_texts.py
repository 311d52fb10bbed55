"""The shard of a run that holds a text, beside a dictionary."""

import hashlib
import random
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.storage.lake.added_texts import AddedTexts


def hashed(number):
    return hashlib.blake2b(str(number).encode()).hexdigest()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(0, 40), max_size=12), max_size=20), st.sets(st.integers(0, 60)))
def test_newest_shard_of_each_text_is_found(shards, wanted):
    added, beside = AddedTexts(), {}
    for number, texts in enumerate(shards):
        added.add(f"{number}.parquet", map(hashed, texts))
        beside.update(dict.fromkeys(texts, f"{number}.parquet"))
    assert added.files_of(map(hashed, wanted)) == sorted({beside[text] for text in wanted if text in beside})


def test_text_takes_a_few_bytes_and_few_parts_are_searched():
    added, drawn = AddedTexts(), random.Random(5)
    for number in range(2_000):
        added.add(f"{number}.parquet", [hashed((number, each)) for each in range(drawn.randint(1, 64))])
    texts = sum(len(keys) for keys, _ in added._parts)
    assert texts > 50_000
    assert sum(sys.getsizeof(part) for parts in added._parts for part in parts) < 13 * texts
    assert len(added._parts) <= 17
    assert added.files_of([hashed((7, 0)), hashed((1_999, 0)), hashed("none")]) == ["1999.parquet", "7.parquet"]
