"""Documents that say nearly the same: found, measured and put together; others are not."""

import pytest

from parquetry.analysis.near_duplicates import LEAST_SHARE, Likeness, groups, likenesses, shared, sketch

WORDS = [f"word{number}" for number in range(4000)]


def text(start, stop):
    return " ".join(WORDS[start:stop])


@pytest.mark.parametrize("size", [100, 3000])
@pytest.mark.parametrize("moved", [0.0, 0.1, 0.5, 1.0])
def test_shared_sequences_are_measured(size, moved):
    """Exactly for short texts, within a few hundredths for long ones."""
    shift = int(size * moved)
    words = [f"word{number}" for number in range(2 * size)]
    one, other = words[:size], words[shift : shift + size]
    each = [{tuple(part[place : place + 5]) for place in range(size - 4)} for part in (one, other)]
    truth = len(each[0] & each[1]) / len(each[0] | each[1])
    measured = shared(sketch(" ".join(one)), sketch(" ".join(other)))
    assert measured == pytest.approx(truth, abs=0 if size == 100 else 0.1)


def test_case_and_signs_do_not_matter_and_order_does():
    assert shared(sketch("The oak table, has FOUR legs."), sketch("the oak table has four legs")) == 1
    assert shared(sketch("the oak table has four legs"), sketch("legs four has table oak the")) == 0


@pytest.mark.parametrize("given", ["", "oak", "\ud800 oak", "-" * 50])
def test_short_and_odd_texts_are_like_themselves(given):
    assert shared(sketch(given), sketch(given)) == 1


def test_only_texts_that_are_nearly_the_same_are_alike():
    texts = {0: text(0, 200), 1: text(0, 190), 2: text(0, 100) + text(2000, 2100), 3: text(0, 200)}
    found = likenesses([(2, 3), (0, 1), (0, 3)], {place: sketch(each) for place, each in texts.items()})
    assert [(each.first, each.second) for each in found] == [(0, 1), (0, 3)]
    assert all(LEAST_SHARE <= each.share <= 1 for each in found)


def test_groups_join_what_is_alike_through_others():
    alike = [Likeness(1, 4, 0.9), Likeness(4, 2, 0.8), Likeness(3, 5, 1.0)]
    assert groups(alike, 7) == [-1, 1, 1, 3, 1, 3, -1]
