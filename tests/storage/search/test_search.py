"""Search results: ranked among the visible chunks only, and always as many as there are."""

import math
import re
import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from parquetry.model import Access
from parquetry.ranking.fusion import convex
from parquetry.storage.index.ranking import IDENTITY_SHARE, K1, K3, B
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.searcher import Searcher
from tests.records import failed
from tests.storage.shelf import Shelf

ACCESS = {
    "public": Access(),
    "acme": Access("organization", "acme"),
    "other": Access("organization", "other"),
    "ada": Access("individual", user_id="ada"),
    "bob": Access("individual", user_id="bob"),
}
TEXTS = [
    "the oak table has four legs",
    "an oak chair; oak, oak and more oak",
    "walnut is darker than oak",
    "the table of contents",
    "nothing of interest here at all, in many words that match no query whatever they say",
    "Tische aus Eiche: größer, schöner, Öl",
]


def terms(text):
    folded = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", folded.lower())


def bm25(query, texts):
    """Compute the formula as published, one document at a time."""
    # The heading above a chunk counts as one of its words.
    documents = [["heading", *terms(text)] for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    scores = {}
    for text, document in zip(texts, documents, strict=True):
        counts, score, named = Counter(document), 0.0, 0.0
        for term, times in Counter(terms(query)).items():
            holding = sum(term in other for other in documents)
            idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            frequency = counts[term]
            saturated = frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * len(document) / mean))
            weight = times * (K3 + 1) / (times + K3) * idf
            score += weight * saturated
            # The opening of each text is all of it; no query has a word of the file name or the title.
            named += weight * min(frequency, 2) / (1 + min(frequency, 2))
        if score > 0:
            scores[text] = score + IDENTITY_SHARE * named
    return scores


@pytest.fixture(scope="module")
def empty_shelf(tmp_path_factory):
    """Makes corpora that tests share and do not change."""
    return lambda: Shelf(tmp_path_factory.mktemp("shared") / "corpus")


@pytest.fixture(scope="module")
def texts(empty_shelf):
    shelf = empty_shelf()
    shelf.publish({f"{number}.md": [text] for number, text in enumerate(TEXTS)})
    return shelf


# --- keywords


@pytest.mark.parametrize(
    "query",
    ["oak", "oak table", "OAK Table oak", "table the of", "Größer", "grosser oak", "schoner", "ol eiche", "oak-table!"],
)
def test_keyword_scores_are_those_of_the_formula(texts, query):
    found = texts.search(query, k=10)
    expected = bm25(query, TEXTS)
    assert dict(found) == {text: pytest.approx(score) for text, score in expected.items()}
    assert [score for _, score in found] == pytest.approx(sorted(expected.values(), reverse=True))


@pytest.mark.parametrize("query", ["", "   ", "?!,.", "'; DROP VIEW documents; --", "zzz", "🙂", "%", "$1", "\x00"])
def test_query_that_matches_nothing_finds_nothing(texts, query):
    assert texts.search(query) == []


def test_very_long_query_is_answered(texts):
    query = " ".join(f"word{number}" for number in range(400)) + " walnut"
    assert [text for text, _ in texts.search(query)] == ["walnut is darker than oak"]


def test_chunks_of_one_document_compete_with_each_other(shelf):
    shelf.publish({"a.md": ["first about oak", "second about elm", "third about oak and oak"]})
    assert [text for text, _ in shelf.search("oak")] == ["third about oak and oak", "first about oak"]


def test_years_and_quarters_are_found_by_their_numbers_and_a_whole_word_before_its_parts(shelf):
    reports = ["revenue of FY2017", "revenue of 2017", "margin of Q3", "no figures"]
    shelf.publish({f"{number}.md": [text] for number, text in enumerate(reports)})

    def found(query):
        return [text for text, _ in shelf.search(query)]

    assert set(found("2017")) == {"revenue of FY2017", "revenue of 2017"}
    assert found("quarter 3") == ["margin of Q3"]
    assert found("FY2017") == ["revenue of FY2017", "revenue of 2017"]


def test_ties_stand_by_document_and_place(shelf):
    shelf.publish({f"{name}.md": ["same words", "same words"] for name in "dbca"})
    with shelf.connect() as connection:
        order = connection.execute("SELECT chunk_id FROM chunks ORDER BY document_id, chunk_index").fetchall()
    for _ in range(3):
        with shelf.index() as connection:
            hits = Searcher(connection).search("same", {}, "text", 8)
        assert [(hit.row["chunk_id"],) for hit in hits] == order


# --- vectors

AXES = np.eye(4, dtype=np.float32)


def test_vector_scores_are_cosines(shelf):
    vectors = np.array([[1, 0, 0, 0], [3, 4, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    shelf.publish({"a.md": ["same", "near", "opposite", "without a vector"]}, vectors=vectors)
    found = shelf.search("", vector=AXES[0] * 2, mode="vector")
    assert found == [("same", 1.0), ("near", pytest.approx(0.6)), ("opposite", -1.0)]


def test_vector_search_is_exact(shelf):
    random = np.random.default_rng(7)
    vectors = random.normal(size=(200, 4)).astype(np.float32)
    shelf.publish({"a.md": [f"chunk {number}" for number in range(200)]}, vectors=vectors)
    asked = random.normal(size=4).astype(np.float32)
    cosines = vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked)
    expected = [f"chunk {number}" for number in np.argsort(-cosines)[:20]]
    assert [text for text, _ in shelf.search("", vector=asked, mode="vector", k=20)] == expected


def test_query_without_a_vector_finds_nothing_by_vector(texts):
    assert texts.search("oak", vector=np.zeros(4), mode="vector") == []


def test_vectors_of_another_model_are_never_compared(texts):
    assert texts.search("", vector=AXES[0], mode="vector", embedder="other@4") == []


def test_identical_vectors_stand_by_document_and_place(shelf):
    shelf.publish({f"{name}.md": ["x", "y"] for name in "dbca"}, vectors=np.ones((8, 4)))
    with shelf.connect() as connection:
        order = connection.execute("SELECT chunk_id FROM chunks ORDER BY document_id, chunk_index").fetchall()
    with shelf.index() as connection:
        hits = Searcher(connection).search("", {"model@4": AXES[0]}, "vector", 8)
    assert [(hit.row["chunk_id"],) for hit in hits] == order


def test_only_models_of_what_is_visible_count(shelf):
    shelf.publish({"a.md": ["one"], "b.md": ["two"]})
    shelf.publish({"c.md": ["three"]}, embedder="other@2", namespace="hr")
    emptied = [
        replace(row, status="skipped", revision=0, embedder="old@8") for row in shelf.rows() if row.path == "b.md"
    ]
    shelf.lake.publish(shelf.lake.snapshot(), [*emptied, failed("d.md")], "run-x")
    with shelf.index() as connection:
        assert Searcher(connection).embedders() == ["model@4", "other@2"]
        assert Searcher(connection, Filters(namespaces=("hr",))).embedders() == ["other@2"]


# --- hybrid


def test_hybrid_order_is_the_convex_combination_of_both_sides(texts):
    asked = np.array([1, 2, -1, 0.5], np.float32)
    vector = texts.search("", vector=asked, mode="vector", k=100)
    text = texts.search("oak table", k=100)
    expected = convex(vector, text)
    found = texts.search("oak table", vector=asked, mode="hybrid", k=100)
    assert found == [(each, pytest.approx(score)) for each, score in expected]
    assert len(found) == len(TEXTS)


def test_hybrid_with_a_query_of_no_words_is_the_vector_order(texts):
    asked = AXES[2]
    by_vector = [text for text, _ in texts.search("", vector=asked, mode="vector", k=3)]
    assert [text for text, _ in texts.search("!?", vector=asked, mode="hybrid", k=3)] == by_vector


def test_hits_tell_which_side_found_them_and_where(shelf):
    shelf.publish({"sub/a.md": ["oak"], "b.md": ["elm"]}, vectors=[AXES[0], AXES[1]])
    with shelf.index() as connection:
        first, second = Searcher(connection).search("oak", {"model@4": AXES[0]}, "hybrid", 5)
    assert set(first.scores) == {"vector", "text"}
    assert set(second.scores) == {"vector"}
    assert (first.row["filename"], first.row["start"], first.row["end"], first.row["headings"]) == (
        "a.md",
        0,
        3,
        ["Heading"],
    )
    assert (first.row["title"], first.row["namespace"], first.row["source"]) == ("A title", "default", "docs")


# --- number of results


@pytest.fixture(scope="module")
def oaks(empty_shelf):
    shelf = empty_shelf()
    shelf.publish({f"{number}.md": [f"oak {number}"] for number in range(160)})
    shelf.publish({"z.md": ["elm"]}, namespace="hr")
    return shelf


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
@pytest.mark.parametrize("k", [1, 3, 150, 500])
def test_as_many_as_asked_for_or_as_there_are(oaks, mode, k):
    found = oaks.search("oak", vector=AXES[0], mode=mode, k=k, namespaces=("default",))
    assert len(found) == min(k, 160)
    assert len({text for text, _ in found}) == len(found)


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_filters_come_before_ranking(shelf, mode):
    """The best five hundred are excluded; the remaining ones must still fill the page."""
    shelf.publish({f"best/{number}.md": ["oak oak oak"] for number in range(300)}, vectors=np.tile(AXES[0], (300, 1)))
    rest = np.tile([0.1, 1, 1, 1], (7, 1))
    shelf.publish({f"rest/{number}.md": [f"some oak {number}"] for number in range(7)}, vectors=rest)
    found = shelf.search("oak", vector=AXES[0], mode=mode, k=5, filename="rest/*")
    assert len(found) == 5
    assert all(text.startswith("some oak") for text, _ in found)


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_empty_corpus_answers_nothing(shelf, mode):
    assert shelf.search("oak", vector=AXES[0], mode=mode) == []


# --- filters


@pytest.fixture(scope="module")
def library(empty_shelf):
    shelf = empty_shelf()

    def publish(path, text, **fields):
        shelf.publish({path: [text]}, **fields)

    publish("a.md", "oak a", access=Access(tags=("red", "new")))
    publish("sub/b.pdf", "oak b", media_type="application/pdf", access=Access(tags=("red",)))
    publish("sub/deep/it's [x].md", "oak c", namespace="hr")
    return shelf


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "abc"),
        ({"namespaces": ("hr",)}, "c"),
        ({"namespaces": ("hr", "default")}, "abc"),
        ({"namespaces": ("nobody's",)}, ""),
        ({"filename": "*.md"}, "ac"),
        ({"filename": "a.md"}, "a"),
        ({"filename": "sub/*"}, "bc"),
        ({"filename": "b.pdf"}, "b"),
        ({"filename": "*it's*"}, "c"),
        ({"filename": "';--"}, ""),
        ({"tags": ("red",)}, "ab"),
        ({"tags": ("red", "new")}, "a"),
        ({"tags": ("it's",)}, ""),
        ({"media_type": "application/pdf"}, "b"),
        ({"media_type": "application/pdf", "tags": ("new",)}, ""),
    ],
)
def test_filter_leaves_in_what_it_says(library, filters, expected):
    assert sorted(text[-1] for text, _ in library.search("oak", **filters)) == sorted(expected)


def test_removed_failed_and_old_revisions_do_not_answer(shelf):
    shelf.publish({"a.md": ["oak old"], "b.md": ["oak removed"]})
    shelf.publish({"a.md": ["oak new"]})
    shelf.remove("b.md")
    shelf.lake.publish(shelf.lake.snapshot(), [failed("c.md")], "run-x")
    assert [text for text, _ in shelf.search("oak")] == ["oak new"]
    assert {text for text, _ in shelf.search("oak", version=1)} == {"oak old", "oak removed"}


# --- permissions


def publish_secrets(shelf):
    for name, access in ACCESS.items():
        shelf.publish({f"{name}.md": [f"oak {name}"]}, access=access)
    return shelf


@pytest.fixture(scope="module")
def secrets(empty_shelf):
    return publish_secrets(empty_shelf())


@pytest.mark.parametrize(
    ("caller", "sees"),
    [
        pytest.param(None, {"public", "acme", "other", "ada", "bob"}, id="operator"),
        pytest.param(Caller(), {"public"}, id="anybody"),
        pytest.param(Caller(user_id="ada"), {"public", "ada"}, id="user"),
        pytest.param(Caller(org_id="acme"), {"public", "acme"}, id="member"),
        pytest.param(Caller("ada", "acme"), {"public", "ada", "acme"}, id="user-and-member"),
        pytest.param(Caller("acme", "ada"), {"public"}, id="user-and-organization-are-not-mixed-up"),
        pytest.param(Caller("", ""), {"public"}, id="empty-names"),
        pytest.param(Caller("' OR true --", "%"), {"public"}, id="names-that-look-like-sql"),
    ],
)
@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_caller_sees_what_is_theirs(secrets, caller, sees, mode):
    found = secrets.search("oak", vector=AXES[0], mode=mode, k=10, caller=caller)
    assert {text.removeprefix("oak ") for text, _ in found} == sees


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_forbidden_documents_change_nothing_about_an_answer(shelf, mode):
    """Not even through statistics: the rarity of a word must not reveal other users' documents."""
    public = {f"{number}.md": [f"oak {'elm ' * number}{number}"] for number in range(6)}
    vectors = np.random.default_rng(1).normal(size=(6, 4))
    shelf.publish(public, vectors=vectors)
    asked = {"vector": AXES[0], "mode": mode, "k": 10, "caller": Caller("ada")}
    before = shelf.search("oak elm", **asked)
    shelf.publish({f"s{number}.md": ["oak elm oak"] for number in range(30)}, access=ACCESS["bob"])
    assert shelf.search("oak elm", **asked) == [(text, pytest.approx(score)) for text, score in before]


def test_changed_permissions_hold_from_their_version_on(shelf):
    secrets = publish_secrets(shelf)
    (row,) = [each for each in secrets.rows() if each.path == "public.md"]
    version = secrets.lake.publish(secrets.lake.snapshot(), [replace(row, access=ACCESS["bob"])], "run-x")
    assert secrets.search("public", caller=Caller("ada")) == []
    assert [text for text, _ in secrets.search("public", caller=Caller("bob"))] == ["oak public"]
    assert [text for text, _ in secrets.search("public", caller=Caller("ada"), version=version - 1)] == ["oak public"]
