"""The map keeps together what is alike, is the same each time, and says what to install."""

import numpy as np
import pytest

from parquetry.analysis import projection
from parquetry.analysis.projection import add_places, add_to_clusters, clusters, project
from parquetry.errors import SettingsError


def families(number, size, dimensions=32):
    """Vectors around some centres, one family after another."""
    generator = np.random.default_rng(7)
    centres = generator.normal(size=(number, dimensions))
    points = np.repeat(centres, size, axis=0) + 0.15 * generator.normal(size=(number * size, dimensions))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def neighbours_kept(vectors, places, size):
    """The share of the five nearest places that are of the same family."""
    distances = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :5]
    return float((nearest // size == np.arange(len(vectors))[:, None] // size).mean())


@pytest.mark.slow
def test_like_documents_stand_together_within_the_square():
    vectors = families(6, 30)
    places = project(vectors)
    assert places.shape == (180, 2)
    assert places.min() == 0
    assert places.max() == 1
    assert neighbours_kept(vectors, places, 30) > 0.95
    assert np.array_equal(places, project(vectors))


@pytest.mark.slow
def test_documents_beyond_the_landmarks_stand_with_theirs(monkeypatch):
    monkeypatch.setattr(projection, "LANDMARKS", 90)
    vectors = families(6, 30)
    assert neighbours_kept(vectors, project(vectors), 30) > 0.9


def test_added_documents_stand_with_theirs_and_move_no_other():
    vectors = families(6, 30)
    places, labels = project(vectors), np.arange(180, dtype=np.int32) // 30
    missing = np.arange(0, 180, 7)
    fewer, fewer_labels = places.copy(), labels.copy()
    fewer[missing], fewer_labels[missing] = np.nan, -1
    added = add_places(vectors, fewer)
    kept = np.setdiff1d(np.arange(180), missing)
    assert np.array_equal(added[kept], places[kept])
    assert neighbours_kept(vectors, added, 30) > 0.95
    assert np.array_equal(add_to_clusters(vectors, fewer_labels), labels)
    assert np.array_equal(add_places(vectors, places), places)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_known_places_are_enough(count):
    places = np.full((9, 2), np.nan, np.float32)
    places[:count] = 0.5
    assert np.allclose(add_places(families(9, 1), places), 0.5)


def test_check_ends_what_cannot_be_interrupted():
    class Stopped(Exception):
        pass

    looks = []

    def stop():
        looks.append(True)
        if len(looks) > 1:
            raise Stopped

    with pytest.raises(Stopped):
        project(families(30, 10), stop)


def test_families_are_clusters():
    vectors = families(8, 16)
    labels = clusters(vectors)
    assert len(set(labels)) == 8
    for family in range(8):
        assert len(set(labels[family * 16 : family * 16 + 16])) <= 2
    assert list(np.bincount(labels)) == sorted(np.bincount(labels), reverse=True)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_few_documents_have_places_too(count):
    vectors = families(max(count, 1), 1)[:count]
    places = project(vectors)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert len(clusters(vectors)) == count


def test_same_documents_over_and_over_have_places():
    vectors = np.repeat(families(1, 1), 40, axis=0)
    assert np.isfinite(project(vectors)).all()


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    def without(name, *given):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return imported(name, *given)

    imported = projection.import_module
    monkeypatch.setattr(projection, "import_module", without)
    with pytest.raises(SettingsError, match=r"pip install 'parquetry\[map\]'"):
        project(families(2, 4))
