"""What was learned is published whole or not at all, and compared within its scope only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from knowledge.errors import PublishConflict, StorageError
from knowledge.model import ENTRY_TYPE, Access
from knowledge.rows import Stamp
from knowledge.sessions.entry_rows import scope_of
from storage import known_entries
from storage.current import current_rows
from storage.database import reading
from storage.entries import Learned
from storage.filters import Caller, Filters, restrict
from storage.layout import holds_entries
from storage.search import Searcher
from storage.undoing import undo_decision
from tests.records import NOW
from tests.storage.notebook import PUBLIC, Notebook, decision, entry, text_of, vector
from tests.storage.shelf import EMBEDDER

ADA = Access("individual", user_id="ada")
OAK, ELM, ASH = entry("The oak is old."), entry("The elm is young."), entry("The ash is tall.")


@pytest.fixture
def notebook(shelf):
    return Notebook(shelf)


def identities(found):
    return [[each.entry_id for each, _ in one] for one in found]


# --- publishing


def test_entry_is_live_and_no_document(notebook):
    notebook.shelf.publish({"a.md": ["the oak", "the elm"]})
    notebook.learn(OAK, ELM)
    assert notebook.live() == {"The oak is old.": 1, "The elm is young.": 1}
    assert [each.path for each in notebook.shelf.rows()] == ["a.md"]
    assert notebook.shelf.texts() == {"a.md": ["the oak", "the elm"]}
    snapshot = notebook.lake.snapshot()
    assert {each.media_type for each in current_rows(snapshot, what="knowledge")} == {ENTRY_TYPE}
    assert len(current_rows(snapshot, what="all")) == 3


def test_equal_statement_of_another_session_is_counted_and_not_stored_again(notebook):
    notebook.learn(OAK)
    notebook.decide([decision(0, "existing", OAK, session="s-2")])
    notebook.decide([decision(0, "existing", OAK, session="s-2")])
    assert notebook.live() == {"The oak is old.": 2}
    with notebook.shelf.connect() as connection:
        assert connection.execute("SELECT count(*) FROM all_chunks").fetchall() == [(1,)]


def test_merge_replaces_and_counts_every_session_behind_it(notebook):
    notebook.learn(OAK, ELM)
    notebook.decide([decision(0, "merged", ASH, session="s-2", retires=(OAK.entry_id, ELM.entry_id))], [ASH])
    assert notebook.live() == {"The ash is tall.": 2}
    with notebook.shelf.connect() as connection:
        told = connection.execute("SELECT text, live FROM entry_history ORDER BY sequence, text").fetchall()
    assert told == [
        ("The elm is young.", True),
        ("The oak is old.", True),
        ("The ash is tall.", True),
        ("The elm is young.", False),
        ("The oak is old.", False),
    ]


def test_entry_made_and_merged_in_one_run_is_kept_for_an_undo(notebook):
    made = [decision(0, entry=OAK), decision(1, "merged", ELM, session="s-2", retires=(OAK.entry_id,))]
    notebook.decide(made, [OAK, ELM])
    assert notebook.live() == {"The elm is young.": 2}
    with notebook.shelf.connect() as connection:
        assert connection.execute("SELECT live FROM entry_history WHERE text = 'The oak is old.'").fetchall() == [
            (False,)
        ]


def test_retired_entry_that_is_said_again_is_live_with_the_text_it_had(notebook):
    notebook.learn(OAK)
    notebook.decide([decision(0, "merged", ELM, session="s-2", retires=(OAK.entry_id,))], [ELM])
    notebook.learn(OAK, session="s-3")
    assert notebook.live() == {"The oak is old.": 2, "The elm is young.": 2}
    with notebook.shelf.connect() as connection:
        counts = "SELECT (SELECT count(*) FROM all_entries), (SELECT count(*) FROM all_chunks)"
        assert connection.execute(counts).fetchall() == [(2, 2)]


def test_contradiction_is_linked_on_both_sides(notebook):
    notebook.learn(OAK)
    notebook.decide([decision(0, "contradicts", ELM, session="s-2", links=(OAK.entry_id,))], [ELM])
    with notebook.shelf.connect() as connection:
        told = dict(connection.execute("SELECT entry_id, contradicts FROM entries").fetchall())
    assert told == {OAK.entry_id: [ELM.entry_id], ELM.entry_id: [OAK.entry_id]}


def opposed(notebook):
    """text -> texts of what its entry contradicts, live or not."""
    with notebook.shelf.connect() as connection:
        texts = dict(connection.execute("SELECT DISTINCT entry_id, text FROM entry_history").fetchall())
        told = connection.execute("SELECT text, contradicts FROM entries").fetchall()
    return {text: [texts[each] for each in others] for text, others in told}


def test_contradiction_goes_over_to_what_one_side_is_merged_into_and_back(notebook):
    """An entry that is said to contradict one that is not live any more would be doubted for nothing."""
    notebook.learn(OAK)
    notebook.decide([decision(0, "contradicts", ELM, session="s-2", links=(OAK.entry_id,))], [ELM])
    merge = decision(0, "merged", ASH, session="s-3", retires=(OAK.entry_id,))
    notebook.decide([merge], [ASH])
    assert opposed(notebook) == {ELM.text: [ASH.text], ASH.text: [ELM.text]}
    undo_decision(notebook.lake, notebook.ledger("decision_id")[-1][0], Stamp("undo-1", NOW))
    assert opposed(notebook) == {OAK.text: [ELM.text], ELM.text: [OAK.text]}


def test_undone_contradiction_leaves_no_mark(notebook):
    notebook.learn(OAK)
    notebook.decide([decision(0, "contradicts", ELM, session="s-2", links=(OAK.entry_id,))], [ELM])
    undo_decision(notebook.lake, notebook.ledger("decision_id")[-1][0], Stamp("undo-1", NOW))
    assert opposed(notebook) == {OAK.text: []}


def test_ledger_tells_every_field_of_a_decision_back(notebook):
    from storage.ledger import history_of

    made = replace(
        decision(0, entry=replace(OAK, access=ADA), run="learn-1"),
        candidates=(("e-1", 0.75), ("e-2", 0.5)),
        reason="number-lost",
        user_id="ada",
    )
    notebook.decide([made], [replace(OAK, access=ADA)])
    with notebook.shelf.connect() as connection:
        assert history_of(connection, "default", [OAK.entry_id]) == [made]


def test_nothing_is_published_for_an_entry_without_text(notebook):
    with pytest.raises(StorageError, match="nothing was published"):
        notebook.decide([decision(0, entry=OAK)])
    assert notebook.lake.snapshot().version == 0


def test_decision_of_another_run_is_a_mistake(notebook):
    with pytest.raises(ValueError, match="would never count"):
        notebook.writer().publish(notebook.lake.snapshot(), Learned([decision(0, entry=OAK)], [text_of(OAK)]))


# --- published or invisible


class Dies(Exception):
    pass


def test_crash_between_register_and_publish_leaves_nothing_visible(notebook, monkeypatch):
    notebook.learn(ELM)
    before = notebook.ledger()
    real = notebook.lake._commit

    def dies(table, *rest):
        if table == "documents":
            raise Dies
        return real(table, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(notebook.lake, "_commit", dies)
        with pytest.raises(Dies):
            notebook.learn(OAK)
    with notebook.shelf.connect() as connection:
        assert connection.execute("SELECT count(*) FROM all_decisions").fetchall() == [(2,)]
    assert notebook.ledger() == before
    assert notebook.live() == {"The elm is young.": 1}
    with notebook.known() as known:
        assert set(known.entries(scope_of("default", PUBLIC))) == {ELM.entry_id}
    notebook.learn(OAK)
    assert notebook.live() == {"The elm is young.": 1, "The oak is old.": 1}


def test_conflict_leaves_nothing_and_the_same_writer_publishes_later_once(notebook):
    """The attempt that lost has the number of a namespace that nobody else published to: it must not count twice."""
    base = notebook.lake.snapshot()
    other = entry("Somewhere else.", namespace="other")
    writer = notebook.writer()
    run = f"learn-{notebook.runs}"
    first = [decision(0, entry=OAK, run=run), decision(1, entry=other, run=run)]
    notebook.shelf.publish({"b.md": ["somebody was first"]}, namespace="other")
    with pytest.raises(PublishConflict):
        writer.publish(base, Learned(first, [text_of(OAK), text_of(other)]))
    assert (notebook.live(), notebook.ledger()) == ({}, [])
    second = [replace(each, reasoning="again") for each in first]
    writer.publish(notebook.lake.snapshot(), Learned(second, [text_of(OAK), text_of(other)]))
    assert notebook.live() == {"The oak is old.": 1, "Somewhere else.": 1}
    assert notebook.ledger("reasoning") == [("again",), ("again",)]
    with notebook.shelf.connect() as connection:
        counts = connection.execute("SELECT (SELECT count(*) FROM all_chunks), (SELECT count(*) FROM chunks)")
        assert counts.fetchall() == [(3, 1)]


def test_earlier_version_has_its_own_entries_and_decisions(notebook):
    notebook.learn(OAK)
    version = notebook.lake.snapshot().version
    notebook.decide([decision(0, "merged", ELM, session="s-2", retires=(OAK.entry_id,))], [ELM])
    assert notebook.live(version) == {"The oak is old.": 1}
    with notebook.shelf.connect(version) as connection:
        assert connection.execute("SELECT kind FROM decisions").fetchall() == [("new",)]


# --- candidates


def test_candidates_are_those_of_brute_force_in_blocks_of_any_size(notebook, monkeypatch):
    entries = [entry(f"Statement number {number}.") for number in range(40)]
    notebook.learn(*entries)
    wanted = np.stack([vector(f"query {number}") * (number + 1) for number in range(7)])
    matrix = np.stack([vector(each.text) for each in entries])
    cosines = (wanted / np.linalg.norm(wanted, axis=1, keepdims=True)) @ (
        matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    ).T
    expected = [[entries[i].entry_id for i in np.argsort(-row)[:5] if row[i] >= 0.2] for row in cosines]
    assert sum(map(len, expected)) > 20
    for at_a_time in (4_000_000, 50):
        monkeypatch.setattr(known_entries, "SCORES_AT_A_TIME", at_a_time)
        with notebook.known() as known:
            found = known.candidates(scope_of("default", PUBLIC), wanted, EMBEDDER, 5, 0.2)
        assert identities(found) == expected


def test_candidates_come_from_exactly_one_scope(notebook):
    said = "The oak is old."
    scopes = {
        "public": PUBLIC,
        "ada": ADA,
        "eve": Access("individual", user_id="eve"),
        "acme": Access("organization", org_id="acme"),
        "ada of acme": Access("individual", org_id="acme", user_id="ada"),
    }
    entries = {name: entry(said, access) for name, access in scopes.items()}
    elsewhere = entry(said, ADA, namespace="other")
    notebook.learn(*entries.values(), elsewhere)
    assert len({each.entry_id for each in (*entries.values(), elsewhere)}) == 6
    asked = [scope_of("default", access) for access in scopes.values()]
    with notebook.known(*asked) as known:
        for (name, access), scope in zip(scopes.items(), asked, strict=True):
            ((found,),) = known.candidates(scope, vector(said)[None], EMBEDDER, 5, -1)
            assert found == (entries[name], 1.0), name
            assert found[0].access == access
            assert set(known.entries(scope)) == {entries[name].entry_id}


def test_retired_entries_and_documents_are_no_candidates(notebook):
    notebook.shelf.publish({"a.md": ["The oak is old."]}, vectors=[vector("The oak is old.")])
    notebook.learn(OAK)
    notebook.decide([decision(0, "merged", ELM, session="s-2", retires=(OAK.entry_id,))], [ELM])
    with notebook.known() as known:
        found = known.candidates(scope_of("default", PUBLIC), vector(OAK.text)[None], EMBEDDER, 5, -1)
    assert identities(found) == [[ELM.entry_id]]


def test_text_without_a_vector_is_found_by_its_id_alone(notebook):
    writer = notebook.writer()
    made = decision(0, entry=OAK, run="learn-1")
    writer.publish(notebook.lake.snapshot(), Learned([made], [replace(text_of(OAK), vector=np.zeros(4, np.float32))]))
    scope = scope_of("default", PUBLIC)
    with notebook.known() as known:
        assert known.candidates(scope, vector("x")[None], EMBEDDER, 5, -1) == [[]]
        assert known.entries(scope, [OAK.entry_id, "unknown"]) == {OAK.entry_id: OAK}


def test_nothing_of_documents_is_read_to_compare_entries(notebook):
    # So many that their revisions lie around the entry's, and no statistics rule them out.
    notebook.shelf.publish({f"{number}.md": ["one"] for number in range(40)})
    notebook.learn(OAK)
    (documents,) = (file for file in notebook.lake.snapshot().files["chunks"] if not holds_entries(file))
    content = Path(documents).read_bytes()
    footer = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    Path(documents).write_bytes(bytes(footer) + content[footer:])
    with notebook.shelf.connect() as connection, pytest.raises(StorageError), reading():
        connection.execute("SELECT sum(revision) FROM all_chunks").fetchall()
    with notebook.known() as known:
        found = known.candidates(scope_of("default", PUBLIC), vector("x")[None], EMBEDDER, 5, -1)
    assert identities(found) == [[OAK.entry_id]]


def test_entries_of_another_embedder_are_not_compared_until_they_are_embedded_again(notebook):
    notebook.learn(OAK)
    scope = scope_of("default", PUBLIC)
    with notebook.known() as known:
        assert known.candidates(scope, vector(OAK.text, 3)[None], "other@3", 5, -1) == [[]]
        assert known.stale("default", "other@3") == [OAK]
        assert known.stale("default", EMBEDDER) == []
    notebook.decide([], [OAK], embedder="other@3")
    assert notebook.live() == {"The oak is old.": 1}
    with notebook.known() as known:
        assert identities(known.candidates(scope, vector(OAK.text, 3)[None], "other@3", 5, 0.9)) == [[OAK.entry_id]]
        assert known.stale("default", "other@3") == []


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
    """Every byte that callers are told of documents and entries."""
    lines = []
    for caller in (Caller("ada", "acme"), Caller(), None):
        for what in ("documents",) if caller is None else ("documents", "entries", "both"):
            _, found, explanation = hits(connection, settings, what=what, caller=caller)
            lines.append((repr(found), explanation.terms, explanation.documents, explanation.chunks))
    return lines


@pytest.mark.parametrize("exact_chunks", [pytest.param(20_000, id="exact"), pytest.param(1, id="two-stage")])
def test_entries_of_others_change_no_byte_of_an_answer(notebook, monkeypatch, exact_chunks):
    monkeypatch.setattr("storage.search.EXACT_CHUNKS", exact_chunks)
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
    from storage.index import in_memory

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
