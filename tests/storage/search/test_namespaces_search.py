"""A search over several namespaces, of one model or of several."""

import numpy as np
import pytest

from parquetry.model import Access
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.namespaces import namespaces_of
from parquetry.storage.search.searcher import Searcher

pytestmark = pytest.mark.slow

AXES, FLAT = np.eye(4, dtype=np.float32), np.eye(2, dtype=np.float32)


@pytest.fixture
def models(shelf):
    """Embed `hr` with a model of four dimensions, and `it` with one of two."""
    shelf.publish(
        {"near.md": ["oak hr near"], "far.md": ["oak hr far"]}, namespace="hr", vectors=[AXES[0] + 0.1, AXES[1]]
    )
    shelf.publish(
        {"close.md": ["oak it close"], "off.md": ["it off"]},
        namespace="it",
        embedder="other@2",
        vectors=[FLAT[0], FLAT[1]],
    )
    return shelf


def searched(shelf, mode, k, vectors=None, **filters):
    with shelf.index() as connection:
        vectors = {"model@4": AXES[0], "other@2": FLAT[0]} if vectors is None else vectors
        hits = Searcher(connection, Filters(**filters), shelf.settings).search("oak", vectors, mode, k)
    return [hit.row["text"] for hit in hits]


def test_models_that_cannot_be_compared_are_fused_by_rank(models):
    found = searched(models, "vector", 10)
    assert set(found[:2]) == {"oak hr near", "oak it close"}
    assert set(found[2:]) == {"oak hr far", "it off"}


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_as_many_as_asked_for_or_as_there_are_over_several_models(models, mode, k):
    found = searched(models, mode, k)
    assert len(found) == len(set(found)) == min(k, 3 if mode == "text" else 4)


def test_each_namespace_alone_answers_with_its_own_model(models):
    assert searched(models, "vector", 10, namespaces=("hr",)) == ["oak hr near", "oak hr far"]
    assert searched(models, "vector", 10, namespaces=("it",)) == ["oak it close", "it off"]


def test_chunks_of_a_model_without_a_query_vector_have_no_place_among_vectors(models):
    assert searched(models, "vector", 10, vectors={"other@2": FLAT[1]}) == ["it off", "oak it close"]
    assert set(searched(models, "hybrid", 10, vectors={"other@2": FLAT[1]})) == {
        "oak hr near", "oak hr far", "oak it close", "it off"
    }  # fmt: skip


def test_one_model_ranks_several_namespaces_as_one(shelf):
    vectors = [AXES[0] + 0.1, AXES[0] + 0.3, AXES[0] + 0.2, AXES[0] + 0.4]
    for number, vector in enumerate(vectors):
        shelf.publish({f"{number}.md": [str(number)]}, namespace=("hr", "it")[number // 2], vectors=[vector])
    assert searched(shelf, "vector", 10, namespaces=("hr", "it")) == ["0", "2", "1", "3"]


def test_namespaces_tell_their_models(models):
    found = namespaces_of(models.lake.snapshot())
    assert [(each.namespace, each.embedders) for each in found] == [("hr", ("model@4",)), ("it", ("other@2",))]


def test_namespaces_of_a_model_are_those_that_the_caller_sees(shelf):
    """Messages contain these names, and the name of a private project would reveal too much."""
    shelf.publish({"near.md": ["oak"]}, namespace="open")
    shelf.publish({"plan.md": ["oak"]}, namespace="takeover", access=Access("individual", None, "ada"))
    with shelf.index() as connection:
        seen = {
            user: Searcher(connection, Filters(caller=Caller(user)), shelf.settings).namespaces_of("model@4")
            for user in ("bob", "ada")
        }
    assert seen == {"bob": ["open"], "ada": ["open", "takeover"]}
