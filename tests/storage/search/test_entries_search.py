"""Entries are found beside documents, by callers who may see them, and do not affect others' results."""

from dataclasses import replace

import pytest

from parquetry.model import Access
from parquetry.storage.search.filters import Caller, Filters, restrict
from parquetry.storage.search.searcher import Searcher
from tests.storage.notebook import ADA, ASH, ELM, OAK, decision, entry, vector
from tests.storage.shelf import EMBEDDER

pytestmark = pytest.mark.slow

# --- searching


def hits(connection, settings, **filters):
    searcher = Searcher(connection, Filters(**filters), settings)
    found = searcher.search("oak", {EMBEDDER: vector("oak")}, "hybrid", 20)
    return [hit.row["text"] for hit in found], found, searcher.explanation


def test_search_finds_documents_or_entries_or_both(notebook):
    notebook.shelf.publish({"a.md": ["an oak stands here"]})
    notebook.learn(OAK, ELM)
    said = {
        "documents": {"an oak stands here"},
        "entries": {OAK.text, ELM.text},
        "both": {"an oak stands here", OAK.text, ELM.text},
    }
    with notebook.shelf.index() as connection:
        for what, texts in said.items():
            found, _, explanation = hits(connection, notebook.shelf.settings, what=what)
            assert set(found) == texts
            assert explanation.chunks == len(texts)


def test_entries_are_found_by_their_properties(notebook):
    notebook.learn(OAK, entry("A lesson on oaks.", kind="lesson"))
    with notebook.shelf.index() as connection:
        for condition in ({"metadata": (("kind", "lesson"),)}, {"where": "metadata->>'kind' = 'lesson'"}):
            found, *_ = hits(connection, notebook.shelf.settings, what="entries", **condition)
            assert found == ["A lesson on oaks."]


def told(connection, settings):
    """Return every byte that callers receive about documents and entries."""
    lines = []
    for caller in (Caller("ada", "acme"), Caller(), None):
        for what in ("documents",) if caller is None else ("documents", "entries", "both"):
            _, found, explanation = hits(connection, settings, what=what, caller=caller)
            lines.append((repr(found), explanation.terms, explanation.documents, explanation.chunks))
    return lines


@pytest.mark.parametrize("exact_chunks", [pytest.param(20_000, id="exact"), pytest.param(1, id="two-stage")])
def test_entries_of_others_change_no_byte_of_an_answer(notebook, monkeypatch, exact_chunks):
    monkeypatch.setattr("parquetry.storage.search.visible_index.EXACT_CHUNKS", exact_chunks)
    notebook.shelf.publish({f"{n}.md": [f"an oak number {n} stands here"] for n in range(20)})
    notebook.learn(entry("The oak is Ada's.", ADA), entry("The oak is acme's.", Access("organization", org_id="acme")))
    with notebook.shelf.index() as connection:
        before = told(connection, notebook.shelf.settings)
    eve = Access("individual", user_id="eve", org_id="acme")
    notebook.learn(*(entry(f"The oak oak number {n} is Eve's.", eve) for n in range(30)))
    notebook.learn(entry("The oak is evil.", Access("organization", org_id="evil")))
    with notebook.shelf.index() as connection:
        assert told(connection, notebook.shelf.settings) == before
        found, *_ = hits(connection, notebook.shelf.settings, what="entries", caller=Caller("eve"))
        assert len(found) == 20


def test_macros_and_views_of_the_index_are_about_documents_but_entries_have_their_own(notebook):
    notebook.shelf.publish({"a.md": ["an oak stands here"]})
    notebook.learn(OAK, ELM)
    with notebook.shelf.index() as connection, notebook.shelf.connect() as tables:
        for view in ("documents", "chunks"):
            assert connection.execute(f"SELECT count(*) FROM {view}").fetchall() == [(1,)]
        assert connection.execute("SELECT text FROM search_text('oak', k := 5)").fetchall() == [("an oak stands here",)]
        assert connection.execute("SELECT count(*) FROM search_vector([1, 0, 0, 0], k := 5)").fetchall() == [(1,)]
        entries = "SELECT * FROM entries ORDER BY entry_id"
        assert connection.execute(entries).fetchall() == tables.execute(entries).fetchall()


def test_index_brought_up_to_date_with_entries_is_the_one_built_again(notebook):
    from parquetry.storage.index.open_index import in_memory

    with notebook.shelf.index():
        pass
    notebook.shelf.publish({"a.md": ["an oak stands here"]})
    with notebook.shelf.index():
        pass
    notebook.learn(OAK, ELM)
    with notebook.shelf.index():
        pass
    notebook.decide([decision(0, "merged", ASH, session="s-2", retires=(OAK.entry_id,))], [ASH])
    settings = notebook.shelf.settings
    with notebook.shelf.index() as connection:
        grown = [repr(hits(connection, settings, what=what)[1]) for what in ("documents", "entries", "both")]
    built = in_memory(notebook.lake.snapshot(), settings.language)
    assert grown == [repr(hits(built.connection, settings, what=what)[1]) for what in ("documents", "entries", "both")]
    built.close()
    assert ELM.text in grown[1]
    assert OAK.text not in grown[2]


# --- on behalf of a caller


def test_caller_sees_what_became_of_shared_entries_and_nothing_of_others_sessions(notebook):
    shared = entry("Shared by acme.", Access("organization", org_id="acme"))
    hers = entry("Ada's own.", ADA)
    run = "learn-1"
    made = [
        replace(decision(0, entry=shared, run=run), user_id="eve"),
        replace(decision(1, "existing", shared, session="s-2", run=run), user_id="ada"),
        replace(decision(2, entry=hers, run=run), user_id="ada"),
        replace(decision(3, entry=entry("Eve's own.", Access("individual", user_id="eve")), run=run), user_id="eve"),
        replace(decision(4, "refused", session="s-1", run=run), user_id="eve", text="Eve's secret"),
    ]
    notebook.decide(made, [shared, hers, entry("Eve's own.", Access("individual", user_id="eve"))])
    with notebook.shelf.connect() as connection:
        restrict(connection, Caller("ada", "acme"))
        columns = "number, session_id, session_uri, session_user, evidence, text, reasoning"
        seen = connection.execute(f"SELECT {columns} FROM decisions ORDER BY number").fetchall()
        assert seen == [
            (0, None, None, None, None, None, None),
            (1, "s-2", "file:///chats/s-2.json", "ada", ["m1"], shared.text, "because"),
            (2, "s-1", "file:///chats/s-1.json", "ada", ["m1"], hers.text, "because"),
        ]
        for view in ("entries", "entry_history"):
            texts = connection.execute(f"SELECT text FROM {view} ORDER BY text").fetchall()
            assert texts == [("Ada's own.",), ("Shared by acme.",)]
