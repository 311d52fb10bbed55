"""Learned entries are published whole or not at all."""

from dataclasses import replace
from datetime import timedelta

import pytest

from parquetry.errors import PublishConflict, StorageError
from parquetry.model import ENTRY_TYPE
from parquetry.planning.rows import RunStamp
from parquetry.sessions.ledger.entry_rows import scope_of
from parquetry.storage.entries.entries import Learned
from parquetry.storage.entries.undoing import undo_decision
from parquetry.storage.lake import lake
from parquetry.storage.lake.current import current_rows
from tests.records import NOW
from tests.storage.notebook import ADA, ASH, ELM, OAK, PUBLIC, decision, entry, text_of

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("reading", ["files", "index"])
def test_contradicted_entry_is_valid_until_the_later_one_is_said(notebook, reading):
    """Both stay, so that readers can see which of them held when."""
    later = replace(ELM, valid_from=OAK.valid_from + timedelta(days=3))
    notebook.learn(OAK, ASH)
    notebook.decide([decision(0, "contradicts", later, session="s-2", links=(OAK.entry_id,))], [later])
    with notebook.shelf.connect() if reading == "files" else notebook.shelf.index() as connection:
        found = connection.execute("SELECT text, valid_from, valid_until FROM entries").fetchall()
    assert {text: times for text, *times in found} == {
        OAK.text: [OAK.valid_from, later.valid_from],
        ELM.text: [later.valid_from, None],
        ASH.text: [ASH.valid_from, None],
    }


def opposed(notebook):
    """Return text -> texts of the entries that its entry contradicts, live or not."""
    with notebook.shelf.connect() as connection:
        texts = dict(connection.execute("SELECT DISTINCT entry_id, text FROM entry_history").fetchall())
        told = connection.execute("SELECT text, contradicts FROM entries").fetchall()
    return {text: [texts[each] for each in others] for text, others in told}


def test_contradiction_goes_over_to_what_one_side_is_merged_into_and_back(notebook):
    """A contradiction of an entry that is no longer live would cast doubt for nothing."""
    notebook.learn(OAK)
    notebook.decide([decision(0, "contradicts", ELM, session="s-2", links=(OAK.entry_id,))], [ELM])
    merge = decision(0, "merged", ASH, session="s-3", retires=(OAK.entry_id,))
    notebook.decide([merge], [ASH])
    assert opposed(notebook) == {ELM.text: [ASH.text], ASH.text: [ELM.text]}
    undo_decision(notebook.lake, notebook.ledger("decision_id")[-1][0], RunStamp("undo-1", NOW))
    assert opposed(notebook) == {OAK.text: [ELM.text], ELM.text: [OAK.text]}


def test_undone_contradiction_leaves_no_mark(notebook):
    notebook.learn(OAK)
    notebook.decide([decision(0, "contradicts", ELM, session="s-2", links=(OAK.entry_id,))], [ELM])
    undo_decision(notebook.lake, notebook.ledger("decision_id")[-1][0], RunStamp("undo-1", NOW))
    assert opposed(notebook) == {OAK.text: []}


def test_ledger_tells_every_field_of_a_decision_back(notebook):
    from parquetry.storage.lake.ledger import history_of

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


# --- atomic publishing


class Dies(Exception):
    pass


def test_crash_between_register_and_publish_leaves_nothing_visible(notebook, monkeypatch):
    notebook.learn(ELM)
    before = notebook.ledger()
    real = lake.commit

    def dies(layout, table, *rest, **options):
        if table == "documents":
            raise Dies
        return real(layout, table, *rest, **options)

    with monkeypatch.context() as patched:
        patched.setattr(lake, "commit", dies)
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
    """The failed attempt numbered a namespace that only this writer publishes to: it must not count twice."""
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
