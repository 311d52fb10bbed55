"""Pairs of similar vectors: all of a few, nearly all of many, in bounded work whatever the vectors are."""

import numpy as np
import pytest

from parquetry.analysis import similar_vectors
from parquetry.analysis.similar_vectors import MOST_PAIRS, similar_pairs


def normal(rows):
    array = np.array(rows, np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def crowd(count, copies=0):
    """Vectors around some centres, of which the last ones are copies of the first, a little off."""
    generator = np.random.default_rng(5)
    centres = generator.normal(size=(20, 64))
    found = centres[generator.integers(0, 20, count)] + 0.8 * generator.normal(size=(count, 64))
    found[count - copies :] = found[:copies] + 0.12 * generator.normal(size=(copies, 64))
    return normal(found)


def test_similar_vectors_are_pairs_and_others_are_not():
    found = similar_pairs(normal([[1, 0, 0], [0, 1, 0], [1, 0.05, 0], [0, 1, 0.01], [0, 0, 1]]))
    assert found == [(1, 3), (0, 2)]
    assert similar_pairs(normal([[1, 0]])) == []
    assert similar_pairs(np.zeros((0, 4), np.float32)) == []


def test_pairs_are_found_across_blocks():
    generator = np.random.default_rng(1)
    many = generator.normal(size=(700, 32))
    many[650] = many[3] + 0.01
    assert similar_pairs(normal(many)) == [(3, 650)]


def test_divisions_find_nearly_all_pairs(monkeypatch):
    """Each pair is separated by some divisions; that all of them separate it is unlikely."""
    vectors = crowd(4_000, copies=300)
    exact = similar_pairs(vectors)
    assert len(exact) >= 300
    monkeypatch.setattr(similar_vectors, "EXACT", 100)
    monkeypatch.setattr(similar_vectors, "_LEAF", 64)
    found = similar_pairs(vectors)
    assert found == similar_pairs(vectors)
    assert set(found) <= set(exact)
    assert len(found) >= 0.95 * len(exact)


@pytest.mark.parametrize("exact", [50, 10_000])
def test_equal_vectors_take_bounded_work(monkeypatch, exact):
    """Each keeps its nearest, however many others there are; no group is larger than the others."""
    compared = []

    class Counting(similar_vectors._Nearest):
        def compare(self, vectors, some, others):
            compared.append(len(some) * len(others))
            super().compare(vectors, some, others)

    monkeypatch.setattr(similar_vectors, "_Nearest", Counting)
    monkeypatch.setattr(similar_vectors, "EXACT", exact)
    monkeypatch.setattr(similar_vectors, "_LEAF", 32)
    found = similar_pairs(np.repeat(normal([[1, 2, 3]]), 2_000, axis=0))
    assert 1_000 <= len(found) <= 6_000
    assert max(compared) <= (32 * 32 if exact < 2_000 else 256 * 2_000)
    assert sum(compared) <= (similar_vectors._TREES * 2_000 * 32 if exact < 2_000 else 2_000**2)


def test_changed_vectors_are_compared_with_all_others():
    vectors = crowd(1_000, copies=50)
    everything = similar_pairs(vectors)
    changed = np.array([0, 7, 975])
    found = similar_pairs(vectors, changed)
    assert set(found) == {pair for pair in everything if set(pair) & set(changed.tolist())}
    assert similar_pairs(vectors, changed[:0]) == []


def test_most_similar_pairs_are_kept(monkeypatch):
    vectors = crowd(600, copies=40)
    everything = similar_pairs(vectors)
    monkeypatch.setattr(similar_vectors, "MOST_PAIRS", 10)
    assert similar_pairs(vectors) == everything[:10]
    assert MOST_PAIRS > 10


def test_check_ends_the_search(monkeypatch):
    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    for exact in (10, 10_000):
        monkeypatch.setattr(similar_vectors, "EXACT", exact)
        with pytest.raises(Stopped):
            similar_pairs(crowd(600), check=stop)
