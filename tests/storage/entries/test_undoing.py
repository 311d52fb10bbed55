"""One publish undoes a decision; it gives way to other publishes and never affects another namespace."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquetry.errors import DamagedCorpus, PublishConflict, SettingsError
from parquetry.planning.rows import RunStamp
from parquetry.storage.entries.undoing import undo_decision
from parquetry.storage.lake.rewrite import remove_namespace, restore_version
from tests.damage import replace_in_column
from tests.records import NOW
from tests.storage.notebook import Notebook, decision, entry
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

OAK, ELM, BOTH, ASH = (entry(f"The {name}.") for name in ("oak", "elm", "oak and elm", "ash"))


@pytest.fixture
def notebook(shelf):
    notebook = Notebook(shelf)
    shelf.publish({"a.md": ["one"]})
    notebook.learn(OAK, ELM)
    notebook.decide([decision(0, "merged", BOTH, session="s-2", retires=(OAK.entry_id, ELM.entry_id))], [BOTH])
    return notebook


def last(notebook, kind):
    return [name for name, of in notebook.ledger("decision_id, kind") if of == kind][-1]


def undo(notebook, decision_id, number=1, lake=None):
    return undo_decision(lake or notebook.lake, decision_id, RunStamp(f"undo-{number}", NOW))


def test_undone_merge_brings_back_what_it_replaced_and_touches_no_document(notebook):
    done = undo(notebook, last(notebook, "merged"))
    assert notebook.live() == {"The oak.": 1, "The elm.": 1}
    assert set(done.undoing.decision.adds) == {OAK.entry_id, ELM.entry_id}
    assert done.undoing.decision.retires == (BOTH.entry_id,)
    assert (done.version_before, done.version) == (3, 4)
    assert notebook.shelf.texts() == {"a.md": ["one"]}
    assert notebook.ledger("undone_by")[-2:] == [(done.undoing.decision.decision_id,), (None,)]


def test_undoing_is_undone_and_everything_is_as_it_was(notebook):
    before, merge = notebook.live(), last(notebook, "merged")

    def undone_by():
        return dict(notebook.ledger("decision_id, undone_by"))[merge]

    first = undo(notebook, merge).undoing.decision.decision_id
    assert undone_by() == first
    undo(notebook, first, 2)
    assert (notebook.live(), undone_by()) == (before, None)
    third = undo(notebook, merge, 3).undoing.decision.decision_id
    assert (notebook.live(), undone_by()) == ({"The oak.": 1, "The elm.": 1}, third)


def test_session_that_said_it_again_is_taken_back_and_the_entry_stays(notebook):
    notebook.decide([decision(0, "existing", BOTH, session="s-3")])
    assert notebook.live() == {"The oak and elm.": 3}
    done = undo(notebook, last(notebook, "existing"))
    assert notebook.live() == {"The oak and elm.": 2}
    assert (done.undoing.decision.adds, done.undoing.decision.retires) == ((), ())
    undo(notebook, done.undoing.decision.decision_id, 2)
    assert notebook.live() == {"The oak and elm.": 3}


def test_undoing_that_changes_no_entry_counts_all_the_same(notebook):
    for _ in range(2):
        notebook.decide([decision(notebook.runs, "existing", BOTH, session="s-3")])
    before, target = notebook.live(), last(notebook, "existing")
    done = undo(notebook, target)
    assert notebook.live() == before
    assert dict(notebook.ledger("decision_id, undone_by"))[target] == done.undoing.decision.decision_id


def test_contradiction_that_is_undone_is_unlinked_on_the_other_side(notebook):
    notebook.decide([decision(0, "contradicts", ASH, session="s-3", links=(BOTH.entry_id,))], [ASH])
    undo(notebook, last(notebook, "contradicts"))
    with notebook.shelf.connect() as connection:
        assert connection.execute("SELECT text, contradicts FROM entries").fetchall() == [("The oak and elm.", [])]


def test_beginning_of_an_id_is_enough_and_an_unknown_one_is_refused(notebook):
    with pytest.raises(SettingsError, match="no decision 'zz'"):
        undo(notebook, "zz")
    with pytest.raises(SettingsError, match="no decision ''"):
        undo(notebook, "")
    undo(notebook, last(notebook, "merged")[:8])
    assert notebook.live() == {"The oak.": 1, "The elm.": 1}


def test_second_undo_is_refused_and_publishes_nothing(notebook):
    undo(notebook, last(notebook, "merged"))
    version = notebook.lake.snapshot().version
    with pytest.raises(SettingsError, match="undone already"):
        undo(notebook, last(notebook, "merged"), 2)
    assert notebook.lake.snapshot().version == version


class Busy:
    """A lake in which another writer publishes first, a given number of times."""

    def __init__(self, notebook, times):
        self.notebook, self.times = notebook, times
        self.layout = notebook.lake.layout
        self.snapshot, self.record = notebook.lake.snapshot, notebook.lake.record
        self.register = notebook.lake.register

    def publish(self, *arguments):
        if self.times:
            self.times -= 1
            self.notebook.decide([decision(0, "existing", BOTH, session=f"busy-{self.times}")])
        return self.notebook.lake.publish(*arguments)


def test_undo_gives_way_to_others_and_sees_what_they_published(notebook):
    undo(notebook, last(notebook, "merged"), lake=Busy(notebook, 2))
    assert notebook.live() == {"The oak.": 1, "The elm.": 1, "The oak and elm.": 2}
    assert len([kind for (kind,) in notebook.ledger("kind") if kind == "undone"]) == 1


def test_undo_gives_up_when_others_never_stop(notebook, monkeypatch):
    monkeypatch.setattr("parquetry.storage.lake.publishing.ATTEMPTS", 2)
    with pytest.raises(PublishConflict, match="nothing was changed, try again"):
        undo(notebook, last(notebook, "merged"), lake=Busy(notebook, 99))


def test_equal_statement_of_another_namespace_is_left_alone(notebook):
    notebook.learn(entry("The oak.", namespace="other"))
    undo(notebook, last(notebook, "merged"))
    remove_namespace(notebook.lake, "default", RunStamp("gone", NOW))
    assert notebook.live() == {"The oak.": 1}
    with notebook.shelf.connect() as connection:
        assert connection.execute("SELECT DISTINCT namespace FROM published").fetchall() == [("other",)]


def test_deleted_namespace_and_restored_version_are_on_record_and_can_be_undone(notebook):
    remove_namespace(notebook.lake, "default", RunStamp("gone", NOW))
    assert notebook.live() == {}
    assert notebook.shelf.texts() == {}
    undo(notebook, last(notebook, "undone"))
    assert set(notebook.live()) == {"The oak and elm."}
    restore_version(notebook.lake, 2, RunStamp("back", NOW))
    assert notebook.live() == {"The oak.": 1, "The elm.": 1}
    assert notebook.shelf.texts() == {"a.md": ["one"]}
    undo(notebook, last(notebook, "merged"), 2)
    assert set(notebook.live()) == {"The oak.", "The elm."}


@st.composite
def steps(draw):
    kinds = st.sampled_from(["new", "existing", "merged", "undo", "undo"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 3), st.integers(0, 9)), min_size=3, max_size=5))


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps())
def test_live_entries_are_what_the_recorded_decisions_add_and_retire(tmp_path_factory, steps):
    notebook = Notebook(Shelf(tmp_path_factory.mktemp("laws") / "corpus"))
    entries = [OAK, ELM, BOTH, ASH]
    for number, (kind, which, choice) in enumerate(steps):
        one, live = entries[which], notebook.live()
        known = [each for each in entries if each.text in live]
        if kind == "undo":
            open_decisions = [each for each, undone in notebook.ledger("decision_id, undone_by") if undone is None]
            if open_decisions:
                undo(notebook, open_decisions[choice % len(open_decisions)], number)
        elif one in known:
            notebook.decide([decision(0, "existing", one, session=f"s-{choice}")])
        elif kind == "merged" and known:
            retires = (known[choice % len(known)].entry_id,)
            notebook.decide([decision(0, "merged", one, session=f"s-{choice}", retires=retires)], [one])
        else:
            notebook.learn(one, session=f"s-{choice}")
    folded = set()
    for adds, retires in notebook.ledger("adds, retires"):
        folded = (folded - set(retires)) | set(adds)
    assert {each.entry_id for each in entries if each.text in notebook.live()} == folded


@pytest.mark.parametrize(
    ("table", "column", "old"), [("documents", "source", "s"), ("decisions", "reasoning", "because")]
)
def test_rows_of_a_damaged_shard_are_not_published_again(notebook, table, column, old):
    merge, before = last(notebook, "merged"), notebook.lake.snapshot().version
    shard = max(Path(notebook.lake.layout.root, table).glob("*.parquet"))
    replace_in_column(shard, column, old, "?")
    with pytest.raises(DamagedCorpus, match=rf"^the corpus is damaged: {shard} is not what was written"):
        undo(notebook, merge)
    assert notebook.lake.snapshot().version == before
