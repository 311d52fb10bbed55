"""Words of the headings above a chunk count more than those of its text: in searches of the file, in memory, in SQL."""

import pytest

from parquetry.storage.index import words
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.ranking import K1, B
from parquetry.storage.index.tokens import HEADING_EXTRA
from parquetry.storage.index.vector_memory import VectorMemories
from parquetry.storage.search.searcher import Searcher
from tests.storage.shelf import Shelf


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.headings = {"1.md": ("Trees", "Oiling oak"), "2.md": ("Trees", "Boards")}
    shelf.publish({"1.md": ["two thin coats are enough"], "2.md": ["oak and oak are not the same"]})
    return shelf


@pytest.fixture
def index(shelf):
    snapshot = shelf.lake.snapshot()
    index = IndexFolder(snapshot.layout, shelf.settings).open(snapshot)
    yield index
    index.close()


def counted(index, stem):
    """Return path -> occurrences of a word in the chunk, and its length."""
    found = index.session().execute(
        """SELECT path, tf, length FROM parts.postings JOIN parts.terms USING (term) JOIN parts.documents USING (doc)
        WHERE stem = $1""",
        [stem],
    )
    return {path: (tf, length) for path, tf, length in found.fetchall()}


@pytest.mark.parametrize("in_memory", [False, True])
def test_chunk_under_a_heading_with_the_word_ranks_above_one_with_the_word_in_its_text(index, in_memory):
    memory = VectorMemories().of(index) if in_memory else None
    hits = Searcher(index.session(), memory=memory).search("oak", {}, "text", 10)
    assert [hit.row["path"] for hit in hits] == ["1.md", "2.md"]
    # Each has the word in the opening of its document as well.
    scores = [hit.score - hit.identity for hit in hits]
    rarity = 0.1823215567939546
    lengths = {"1.md": 8, "2.md": 9}
    for score, (path, times) in zip(scores, {"1.md": 1 + HEADING_EXTRA, "2.md": 2}.items(), strict=True):
        norm = K1 * (1 - B + B * lengths[path] / 8.5)
        assert score == pytest.approx(rarity * times * (K1 + 1) / (times + norm), rel=1e-5)


def test_macro_ranks_by_headings_too(index):
    found = index.session().execute("SELECT filename FROM search_text('oak', 10)").fetchall()
    assert [name for (name,) in found] == ["1.md", "2.md"]


def test_words_of_headings_count_more_and_lengths_stay_those_of_the_text(index):
    assert counted(index, "oak") == {"1.md": (1 + HEADING_EXTRA, 8), "2.md": (2, 9)}
    assert counted(index, "trees") == {"1.md": (1 + HEADING_EXTRA, 8), "2.md": (1 + HEADING_EXTRA, 9)}
    assert counted(index, "coats") == {"1.md": (1, 8)}


def test_heading_that_the_text_repeats_counts_once_for_the_text(shelf):
    shelf.headings["3.md"] = ("Elm",)
    shelf.publish({"3.md": ["# Elm\n\nElm and more Elm"]})
    snapshot = shelf.lake.snapshot()
    index = IndexFolder(snapshot.layout, shelf.settings).open(snapshot)
    assert counted(index, "elm") == {"3.md": (3 + HEADING_EXTRA, 5)}
    index.close()


def test_doctor_counts_words_of_headings_as_the_index_does(shelf, monkeypatch):
    monkeypatch.setattr(words, "HEADING_EXTRA", 0)
    folder = IndexFolder(shelf.lake.layout, shelf.settings)
    folder.refresh(shelf.lake.snapshot())
    (found,) = disagreements(shelf.lake.snapshot(), shelf.settings)[1]
    assert "other words" in found.what
