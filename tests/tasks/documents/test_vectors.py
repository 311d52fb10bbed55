"""A vector is computed once: reused from storage, awaited from a concurrent computation, or else paid for."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from parquetry.errors import StorageError, TransientError
from parquetry.ids import text_hash
from parquetry.storage.lake.stored import Stored
from parquetry.tasks.documents.vectors import RunVectors
from tests.storage.shelf import Shelf
from tests.tasks.documents.scripted import ScriptedEmbedder


@pytest.fixture
def embedder():
    return ScriptedEmbedder()


def inputs(*texts):
    return {text_hash(text): text for text in texts}


def test_new_texts_are_computed_and_paid_for(embedder):
    got = RunVectors(Stored(), embedder).obtain(inputs("a", "bb"))
    assert {key: each.vector.tolist() for key, each in got.by_hash.items()} == {
        text_hash("a"): [1, 1, 0, 0],
        text_hash("bb"): [2, 1, 0, 0],
    }
    assert (got.computed, got.tokens_paid, dict(got.refused)) == (frozenset(inputs("a", "bb")), 20, {})


def test_nothing_to_embed_asks_nothing(embedder):
    got = RunVectors(Stored(), embedder).obtain({})
    assert (dict(got.by_hash), got.tokens_paid, embedder.asked) == ({}, 0, [])


def test_stored_vectors_of_the_same_model_are_not_paid_for_again(tmp_path, embedder):
    shelf = Shelf(tmp_path / "kb")
    shelf.publish({"a.md": ["known", "other model's"]}, embedder="scripted@4", vectors=[[9, 9, 9, 9], [8, 8, 8, 8]])
    shelf.publish({"b.md": ["elsewhere"]}, embedder="model@4")
    stored = Stored(shelf.lake.snapshot())
    got = RunVectors(stored, embedder).obtain(inputs("known", "elsewhere", "new"))
    stored.close()
    assert got.by_hash[text_hash("known")].vector.tolist() == [9, 9, 9, 9]
    assert got.by_hash[text_hash("known")].tokens == 3
    assert sorted(embedder.asked) == ["elsewhere", "new"]
    assert got.tokens_paid == 20


def test_text_of_an_earlier_batch_is_found_before_and_after_it_is_written(tmp_path, embedder):
    shelf = Shelf(tmp_path / "kb")
    stored = Stored(shelf.lake.snapshot())
    vectors = RunVectors(stored, embedder)
    vectors.obtain(inputs("same"))
    again = vectors.obtain(inputs("same"))
    assert (again.tokens_paid, again.computed) == (0, frozenset())
    shelf.write({"a.md": ["same"]}, embedder="scripted@4", vectors=[[5, 5, 5, 5]], register=False)
    (file,) = (shelf.root / "chunks").glob("*.parquet")
    vectors.stored_in(str(file), [text_hash("same")])
    found = vectors.obtain(inputs("same"))
    stored.close()
    assert found.by_hash[text_hash("same")].vector.tolist() == [5, 5, 5, 5]
    assert embedder.asked == ["same"]


def test_shards_of_other_texts_are_not_searched(tmp_path, embedder):
    """A run that writes thousands of shards would search all of them for each batch."""
    shelf = Shelf(tmp_path / "kb")
    stored = Stored(shelf.lake.snapshot())
    vectors = RunVectors(stored, embedder)
    shelf.write({"a.md": ["same"]}, embedder="scripted@4", vectors=[[5, 5, 5, 5]], register=False)
    (file,) = (shelf.root / "chunks").glob("*.parquet")
    vectors.stored_in(str(file), [text_hash("same")])
    vectors.stored_in(str(tmp_path / "not-there.parquet"), [text_hash("other")])
    assert vectors.obtain(inputs("same", "new")).by_hash[text_hash("same")].vector.tolist() == [5, 5, 5, 5]
    with pytest.raises(StorageError, match=r"not-there\.parquet"):
        vectors.obtain(inputs("other"))
    stored.close()


def test_batches_at_the_same_time_compute_a_text_once(embedder):
    embedder.gate = threading.Event()
    vectors = RunVectors(Stored(), embedder)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(vectors.obtain, inputs("shared", "mine"))
        assert embedder.entered.wait(20)
        second = threads.submit(vectors.obtain, inputs("shared"))
        embedder.gate.set()
        got = [first.result(20), second.result(20)]
    assert sorted(embedder.asked) == ["mine", "shared"]
    assert [each.tokens_paid for each in got] == [20, 0]
    assert got[1].by_hash[text_hash("shared")].vector.tolist() == [6, 1, 0, 0]


def test_who_waits_for_a_failed_computation_may_try_again(embedder):
    """The failure may be transient and has nothing to do with the documents that wait."""
    vectors = RunVectors(Stored(), embedder)
    _, claims = vectors._find_or_claim(inputs("shared"), {})
    theirs = claims.mine
    (future,) = theirs.values()
    future.cancel()
    with pytest.raises(TransientError, match="embedding-failed: the same text was being embedded in another batch"):
        vectors.obtain(inputs("shared"))
    vectors._drop(theirs)
    assert vectors.obtain(inputs("shared")).tokens_paid == 10


def test_failed_computation_is_not_remembered(embedder):
    embedder.failures = [TransientError("rate-limited", "slow down")]
    vectors = RunVectors(Stored(), embedder)
    with pytest.raises(TransientError):
        vectors.obtain(inputs("a"))
    assert vectors.obtain(inputs("a")).tokens_paid == 10


def test_refused_text_has_zeros_and_a_reason_wherever_it_stands(embedder):
    embedder.refuses = ("bad",)
    vectors = RunVectors(Stored(), embedder)
    got = vectors.obtain(inputs("bad", "good"))
    assert not got.by_hash[text_hash("bad")].vector.any()
    assert dict(got.refused) == {text_hash("bad"): "too-long: is too long"}
    again = vectors.obtain(inputs("bad"))
    assert list(again.refused) == [text_hash("bad")]
    assert embedder.asked.count("bad") == 1


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        (lambda texts: np.zeros((len(texts) + 1, 4), np.float32), r"shape \(3, 4\) for 2 texts"),
        (lambda texts: np.zeros((len(texts), 5), np.float32), r"shape \(2, 5\) for 2 texts"),
        (lambda texts: np.full((len(texts), 4), np.nan, np.float32), "not finite"),
        (lambda texts: np.full((len(texts), 4), np.inf, np.float32), "not finite"),
    ],
)
def test_embedder_that_returns_something_else_stops_the_run(embedder, vectors, problem):
    embedder.vectors = vectors
    with pytest.raises(StorageError, match=problem):
        RunVectors(Stored(), embedder).obtain(inputs("a", "b"))
