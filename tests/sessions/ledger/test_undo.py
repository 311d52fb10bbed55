"""The laws of decisions: those in force determine the live entries, and undoing one restores the state without it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.errors import SettingsError
from parquetry.planning.rows import RunStamp
from parquetry.sessions.ledger.entry_state import entry_states, in_force
from parquetry.sessions.ledger.undo import undo
from tests.records import NOW
from tests.storage.notebook import decision, entry

ENTRIES = [entry(f"Statement {name}.") for name in "abcdef"]
IDS = {each.entry_id: each.text[10] for each in ENTRIES}


def stamp(number):
    return RunStamp(f"undo-{number}", NOW + timedelta(days=number))


def live(history):
    """Return the names of the live entries, derived from all decisions together."""
    return {IDS[entry] for entry, each in entry_states(history).items() if each.live}


def folded(history):
    """Return the names of the live entries, derived only from the record of each decision at its time."""
    names = set()
    for each in history:
        names -= set(each.retires)
        names |= set(each.adds)
    return {IDS[name] for name in names}


@st.composite
def histories(draw):
    """Generate decisions as runs make them, each from the entries live at its time, with some undone in between."""
    history = []
    for number in range(draw(st.integers(1, 12))):
        alive = sorted(entry for entry, each in entry_states(history).items() if each.live)
        standing = [each for each in in_force(history) if each.entry_id or each.adds or each.retires or each.undoes]
        kind = draw(st.sampled_from(["new", "existing", "merged", "contradicts", "undone", "refused"]))
        one = draw(st.sampled_from(ENTRIES))
        session = draw(st.sampled_from(["s-1", "s-2", "s-3"]))
        if kind == "undone" and standing:
            history.append(undo(draw(st.sampled_from(standing)), history, stamp(number)).decision)
        elif kind == "refused":
            history.append(decision(number, "refused", session=session))
        elif one.entry_id in alive:
            history.append(decision(number, "existing", one, session=session))
        elif kind == "merged" and alive:
            retires = tuple(draw(st.sets(st.sampled_from(alive), min_size=1, max_size=3)))
            history.append(decision(number, "merged", one, session=session, retires=retires))
        elif kind == "contradicts" and alive:
            links = (draw(st.sampled_from(alive)),)
            history.append(decision(number, "contradicts", one, session=session, links=links))
        else:
            history.append(decision(number, "new", one, session=session))
    return history


@given(histories())
def test_what_each_decision_recorded_gives_what_is_live(history):
    assert folded(history) == live(history)


@given(histories())
def test_what_is_live_follows_from_the_decisions_in_force_alone(history):
    kept = [each for each in in_force(history) if each.undoes is None]
    assert entry_states(kept) == {k: v for k, v in entry_states(history).items() if k in entry_states(kept)}
    assert live(kept) == live(history)


@given(histories(), st.data())
def test_undone_decision_counts_as_if_it_had_never_been_made(history, data):
    choices = [each for each in in_force(history) if each.entry_id and each.undoes is None]
    if not choices:
        return
    target = data.draw(st.sampled_from(choices))
    after = [*history, undo(target, history, stamp(99)).decision]
    without = [each for each in in_force(history) if each is not target and each.undoes is None]
    assert live(after) == live(without) == folded(after)


@given(histories(), st.data())
def test_undoing_an_undoing_gives_everything_back_as_it_was(history, data):
    choices = [each for each in in_force(history) if each.entry_id or each.undoes]
    if not choices:
        return
    first = undo(data.draw(st.sampled_from(choices)), history, stamp(98)).decision
    second = undo(first, [*history, first], stamp(99)).decision
    assert entry_states([*history, first, second]) == entry_states(history)
    assert (set(second.adds), set(second.retires)) == (set(first.retires), set(first.adds))


def history_of_two_merges():
    """Oak and elm were merged into one entry, which then absorbed the ash."""
    oak, elm, both, ash, three = ENTRIES[:5]
    return [
        decision(0, "new", oak),
        decision(1, "new", elm, session="s-2"),
        decision(2, "merged", both, session="s-3", retires=(oak.entry_id, elm.entry_id)),
        decision(3, "new", ash, session="s-4"),
        decision(4, "merged", three, session="s-5", retires=(both.entry_id, ash.entry_id)),
    ]


def test_undone_merge_brings_back_what_it_replaced_and_names_the_merge_after_it():
    history = history_of_two_merges()
    undoing = undo(history[2], history, stamp(9))
    assert ({IDS[e] for e in undoing.decision.adds}, undoing.decision.retires) == ({"a", "b"}, ())
    assert undoing.affected == (history[4],)
    assert live([*history, undoing.decision]) == {"a", "b", "e"}


def test_merge_of_what_a_later_merge_made_is_affected_as_well():
    history = history_of_two_merges()
    history.append(decision(5, "merged", ENTRIES[5], session="s-6", retires=(ENTRIES[4].entry_id,)))
    history.append(decision(6, "new", ENTRIES[0], session="s-7"))
    assert undo(history[2], history, stamp(9)).affected == (history[4], history[5])


def test_entry_that_another_merge_replaced_does_not_come_back_with_the_later_one():
    history = history_of_two_merges()
    history.append(undo(history[2], history, stamp(8)).decision)
    history.append(undo(history[4], history, stamp(9)).decision)
    assert live(history) == {"a", "b", "d"}


def test_entry_that_a_second_session_says_stays_when_the_first_is_taken_back():
    history = [decision(0, "new", ENTRIES[0]), decision(1, "existing", ENTRIES[0], session="s-2")]
    undoing = undo(history[0], history, stamp(9))
    assert (undoing.decision.adds, undoing.decision.retires) == ((), ())
    assert undoing.decision.entry_id == ENTRIES[0].entry_id
    assert entry_states([*history, undoing.decision])[ENTRIES[0].entry_id].sessions == {"s-2"}


def test_merge_carries_the_sessions_of_what_it_replaced():
    standing = entry_states(history_of_two_merges())
    assert standing[ENTRIES[4].entry_id].sessions == {"s-1", "s-2", "s-3", "s-4", "s-5"}


def test_contradiction_is_told_on_both_sides_until_it_is_undone():
    one, other = ENTRIES[:2]
    history = [decision(0, "new", one), decision(1, "contradicts", other, session="s-2", links=(one.entry_id,))]
    standing = entry_states(history)
    assert standing[one.entry_id].contradicts == (other.entry_id,)
    assert standing[other.entry_id].contradicts == (one.entry_id,)
    undone = entry_states([*history, undo(history[1], history, stamp(9)).decision])
    assert undone[one.entry_id].contradicts == ()


def test_decision_that_is_undone_already_is_refused_with_the_way_to_have_it_back():
    history = [decision(0, "new", ENTRIES[0])]
    history.append(undo(history[0], history, stamp(8)).decision)
    with pytest.raises(SettingsError, match=f"undone already.*parquetry undo {history[1].decision_id}"):
        undo(history[0], history, stamp(9))


def test_refusal_has_nothing_to_undo():
    refused = decision(0, "refused")
    with pytest.raises(SettingsError, match="made no entry"):
        undo(refused, [refused], stamp(9))


def test_latest_moment_in_which_it_was_said_counts_and_dates_of_a_merge_are_carried():
    oak, elm, both = ENTRIES[:3]
    later = decision(0, "new", oak).said_at + timedelta(days=30)
    history = [
        decision(0, "new", oak),
        replace(decision(1, "existing", oak, session="s-2"), said_at=later),
        decision(2, "merged", both, session="s-3", retires=(oak.entry_id,)),
        decision(3, "new", elm),
    ]
    standing = entry_states(history)
    assert standing[both.entry_id].last_said == later
    assert standing[elm.entry_id].last_said == later - timedelta(days=30)
