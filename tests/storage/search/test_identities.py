"""A chunk knows which document it is of: file name, title and opening count, as far as the caller may see them."""

from dataclasses import replace

import pytest

from parquetry.model import Access
from parquetry.storage.index import identities
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.vector_memory import VectorMemories
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.searcher import Searcher
from tests.records import row
from tests.storage.shelf import Shelf

COVER = "annual report " + "and its long preface " * 20
BODY = [COVER, "contents", "sales of the year"]
BOB = Access("individual", user_id="bob")


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "corpus")


def opened(shelf):
    snapshot = shelf.lake.snapshot()
    return IndexFolder(snapshot.layout, shelf.settings).open(snapshot)


def searched(shelf, query, caller=None, *, in_memory=False):
    """Return the hits of a keyword search."""
    index = opened(shelf)
    memory = VectorMemories().of(index) if in_memory else None
    hits = Searcher(index.session(), Filters(caller=caller), shelf.settings, memory).search(query, {}, "text", 50)
    index.close()
    return hits


def sales(shelf, query, caller=None, **options):
    """Return file name -> identity's part of the score of the chunk about sales, best first."""
    hits = searched(shelf, query, caller, **options)
    return {hit.row["filename"]: round(hit.identity, 9) for hit in hits if hit.row["text"] == BODY[-1]}


def identities_of(shelf):
    """Return path -> words of the identity."""
    index = opened(shelf)
    found = index.session().execute(
        """SELECT path, list(stem ORDER BY stem) FROM parts.documents LEFT JOIN (
            SELECT document AS number, stem FROM parts.identities JOIN parts.terms USING (term)
        ) USING (number) GROUP BY path"""
    )
    words = {path: [stem for stem in stems if stem is not None] for path, stems in found.fetchall()}
    index.close()
    return words


def changed(shelf, path, **fields):
    """Publish a document again with other fields and the same content."""
    (known,) = [each for each in shelf.rows() if each.path == path]
    shelf.lake.publish(shelf.lake.snapshot(), [replace(known, **fields)], f"change-{len(shelf.lake.history())}")


# --- ranking


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    ("birch", "elm"),
    [
        pytest.param(("birch_2017.md", {}, ""), ("elm_2017.md", {}, ""), id="file name"),
        pytest.param(("1.md", {"title": "Birch 2017"}, ""), ("2.md", {"title": "Elm 2017"}, ""), id="title"),
        pytest.param(("1.md", {}, "Birch 2017 "), ("2.md", {}, "Elm 2017 "), id="opening"),
    ],
)
def test_chunk_of_the_document_that_is_asked_for_comes_first(shelf, birch, elm, in_memory):
    """The chunks have the same text; only their documents tell them apart."""
    for path, fields, opening in (birch, elm):
        shelf.publish({path: [opening + COVER, *BODY[1:]]}, **fields)
    for query, path in (("sales birch", birch[0]), ("sales elm", elm[0])):
        found = sales(shelf, query, in_memory=in_memory)
        assert next(iter(found)) == path
        assert found[path] > 0
        assert min(found.values()) == 0


def test_chunk_without_any_word_of_the_query_is_no_hit(shelf):
    shelf.publish({"birch.md": BODY})
    assert searched(shelf, "birch") == []


def test_text_after_the_opening_is_no_identity(shelf):
    shelf.publish({"a.md": [COVER, "birch", BODY[-1]], "b.md": BODY})
    assert sales(shelf, "sales birch") == {"a.md": 0, "b.md": 0}


@pytest.mark.parametrize(
    "title",
    ["0000320193-17-000070", "Untitled birch", "Document 1", "Microsoft Word - birch.doc", "birch.indd", "17 — 000070"],
)
def test_titles_that_name_nothing_are_left_out(shelf, title):
    shelf.publish({"1.md": BODY}, title=title)
    shelf.publish({"2.md": BODY}, title=None)
    found = identities_of(shelf)
    assert found["1.md"] == found["2.md"]
    shelf.publish({"3.md": BODY}, title="Birch")
    assert "birch" in identities_of(shelf)["3.md"]


# --- changes


def test_renamed_document_is_found_by_its_new_name_alone(shelf):
    shelf.publish({"birch.md": BODY, "elm.md": BODY})
    assert sales(shelf, "sales birch")["birch.md"] > 0
    shelf.publish({"fir.md": BODY})
    shelf.remove("birch.md")
    assert next(iter(sales(shelf, "sales fir"))) == "fir.md"
    assert set(sales(shelf, "sales birch").values()) == {0}
    assert disagreements(shelf.lake.snapshot(), shelf.settings)[1] == []


@pytest.mark.parametrize("fields", [{"title": "Fir"}, {"filename": "fir.md"}], ids=["title", "file name"])
def test_changed_name_of_an_unchanged_text_counts_at_once_and_costs_one_identity(shelf, fields, monkeypatch):
    shelf.publish({f"{number}.md": BODY for number in range(20)}, title="Birch")
    opened(shelf).close()
    made, learn = [], identities.learn_new

    def noting(connection, language):
        made.extend(connection.execute("SELECT DISTINCT number FROM contents").fetchall())
        learn(connection, language)

    monkeypatch.setattr(identities, "learn_new", noting)
    changed(shelf, "7.md", **fields)
    (first, *others) = sales(shelf, "sales fir").items()
    assert first[0] in ("7.md", "fir.md")
    assert first[1] > 0 == max(part for _, part in others)
    assert len(made) == 1
    assert disagreements(shelf.lake.snapshot(), shelf.settings)[1] == []


def test_changed_permissions_keep_the_identity(shelf, monkeypatch):
    shelf.publish({"birch.md": BODY, "elm.md": BODY})
    before = sales(shelf, "sales birch", Caller("bob"))
    assert before["birch.md"] > 0
    monkeypatch.setattr(identities, "learn_new", None)
    shelf.permit("birch.md", BOB)
    assert sales(shelf, "sales birch", Caller("bob")) == before
    assert disagreements(shelf.lake.snapshot(), shelf.settings)[1] == []


def test_removed_documents_leave_no_identity_behind(shelf):
    shelf.publish({"birch.md": BODY, "elm.md": BODY})
    opened(shelf).close()
    shelf.remove("birch.md")
    shelf.publish({"fir.md": BODY})
    index = opened(shelf)
    session = index.session()
    assert session.execute("SELECT count(*) FROM parts.identities ANTI JOIN parts.documents ON number = document"
        ).fetchall() == [(0,)]  # fmt: skip
    assert session.execute("SELECT count(DISTINCT number) FROM parts.documents").fetchall() == [(2,)]
    index.close()


# --- what the caller may see


def with_hidden_copy(shelf):
    """Publish a public document, and a copy of it under a name that only bob may see."""
    shelf.publish({"birch.md": BODY, "elm.md": BODY})
    (original,) = [each for each in shelf.rows() if each.path == "birch.md"]
    copy = row("merger.md", revision=original.revision, embedder=original.embedder, chunks=len(BODY), access=BOB)
    shelf.lake.publish(shelf.lake.snapshot(), [copy], "copy")


@pytest.mark.parametrize("in_memory", [False, True])
def test_name_of_a_hidden_copy_moves_no_chunk(shelf, in_memory):
    """Chunks belong to a text, and names to its documents, of which the caller sees some."""
    with_hidden_copy(shelf)
    assert set(sales(shelf, "sales merger", Caller("ada"), in_memory=in_memory).values()) == {0}
    seen = sales(shelf, "sales merger", Caller("bob"), in_memory=in_memory)
    assert min(seen["birch.md"], seen["merger.md"]) > seen["elm.md"] == 0


@pytest.mark.parametrize("in_memory", [False, True])
def test_of_several_visible_names_the_best_counts(shelf, in_memory):
    with_hidden_copy(shelf)
    caller = Caller("bob")
    both = [sales(shelf, f"sales {name}", caller, in_memory=in_memory)["birch.md"] for name in ("birch", "merger")]
    assert min(both) > 0
    # One identity counts, not both together.
    assert sales(shelf, "sales birch merger", caller, in_memory=in_memory)["birch.md"] == pytest.approx(max(both))


@pytest.mark.parametrize("in_memory", [False, True])
def test_names_of_hidden_documents_change_no_score(shelf, in_memory):
    shelf.publish({"birch.md": BODY, "elm.md": BODY})
    query, caller = "sales birch merger", Caller("ada")
    before = [(hit.row["chunk_id"], hit.score) for hit in searched(shelf, query, caller, in_memory=in_memory)]
    shelf.publish({f"birch merger {number}.md": BODY for number in range(9)}, access=BOB, title="Birch merger")
    after = [(hit.row["chunk_id"], hit.score) for hit in searched(shelf, query, caller, in_memory=in_memory)]
    assert after == before


# --- explanation


def test_hits_tell_which_part_of_their_score_is_the_identity(shelf):
    shelf.publish({"birch.md": BODY, "elm.md": BODY})
    birch, elm = (hit for hit in searched(shelf, "sales birch") if hit.row["text"] == BODY[-1])
    assert birch.identity > elm.identity == 0
    assert birch.score - birch.identity == pytest.approx(elm.score)
