"""The difference of two texts: it rebuilds both, and stays bounded for texts that share nothing."""

from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.web import text_diff
from parquetry.serving.web.text_diff import CONTEXT, MOST_DIFFERENCES, diff

LINES = st.lists(st.sampled_from("abc"), max_size=12)


@given(LINES, LINES)
def test_difference_holds_both_texts_in_their_order_with_as_few_lines_as_possible(old, new):
    marked = list(text_diff._edits(old, new))
    assert [line.text for line in marked if line.kind != "new"] == old
    assert [line.text for line in marked if line.kind != "old"] == new
    same = sum(line.kind == "same" for line in marked)
    assert same == longest_common(tuple(old), tuple(new))


def longest_common(old, new):
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            best[i + 1][j + 1] = best[i][j] + 1 if one == other else max(best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


def test_equal_lines_far_from_a_difference_are_a_gap():
    old = [f"line {number}" for number in range(40)]
    found = diff("\n".join(old), "\n".join([*old[:20], "new", *old[21:]]))
    assert [(line.kind, line.skipped) for line in found.lines if line.kind == "gap"] == [("gap", 17), ("gap", 16)]
    assert [line.text for line in found.lines if line.kind in ("old", "new")] == ["line 20", "new"]
    assert sum(line.kind == "same" for line in found.lines) == 2 * CONTEXT
    assert (found.added, found.removed, found.is_cut) == (1, 1, False)


def test_texts_that_share_nothing_are_replaced_as_a_whole_and_cut():
    old, new = ("\n".join(f"{name} {number}" for number in range(20_000)) for name in ("old", "new"))
    found = diff(old, new)
    assert found.is_cut
    assert len(found.lines) == text_diff.MOST_SHOWN
    assert found.removed == found.added == text_diff.MOST_LINES > MOST_DIFFERENCES
