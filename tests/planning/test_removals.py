"""Removals in a plan: documents removed, removals to confirm, and documents kept after a partial listing."""

import pytest

from parquetry.model import BrokenOff, Listing, Unlisted
from parquetry.planning.diff import Reindex, plan_source
from parquetry.settings.sections import RefreshSettings
from parquetry.sources.paths import within
from tests.planning.planned import Disk, disk, forbidden, plan, verdict
from tests.records import fingerprints, item, row

# --- allowed removals


def many(count):
    return [row(f"{number}.md", f"content {number:05d}") for number in range(count)]


def left(rows, count):
    return [item(each.path, f"content {int(each.path[:-3]):05d}") for each in rows[:count]]


@pytest.mark.parametrize(
    ("total", "gone", "refused"),
    [
        pytest.param(11, 10, False, id="ten-never-ask"),
        pytest.param(11, 11, True, id="more-than-ten-and-all"),
        pytest.param(100, 20, False, id="exactly-the-share"),
        pytest.param(100, 21, True, id="more-than-the-share"),
        pytest.param(40, 10, False, id="exactly-ten"),
        pytest.param(40, 11, True, id="eleven-of-forty"),
    ],
)
def test_guard_asks_when_both_limits_are_passed(total, gone, refused):
    rows = many(total)
    planned = plan(left(rows, total - gone), rows)
    assert (planned.refused is not None) == refused
    assert sum(change.action == "removed" for change in planned.changes) == gone
    if refused:
        assert f"source docs would lose {gone} of {total} documents" in planned.refused
        assert "--allow-removals" in planned.refused
    assert plan(left(rows, total - gone), rows, allow_removals=True).refused is None


def test_source_that_lists_nothing_asks_however_few_documents_it_had():
    """An empty mount looks the same."""
    planned = plan([], [row("a.md")])
    assert "source docs would lose 1 of 1 documents, because it lists nothing" in planned.refused
    assert "--allow-removals" in planned.refused
    assert plan([], [row("a.md")], allow_removals=True).refused is None
    assert plan([], []).refused is None


def test_guard_limits_are_settings():
    rows = many(4)
    limits = RefreshSettings(max_removed_share=0.5, max_removed_documents=0)
    assert plan(left(rows, 2), rows, limits=limits).refused is None
    assert plan(left(rows, 1), rows, limits=limits).refused is not None


def test_moved_documents_are_no_losses_to_the_guard():
    rows = many(30)
    items = [item(f"moved/{each.path}", f"content {number:05d}") for number, each in enumerate(rows)]
    contents = {each.path: f"content {number:05d}" for number, each in enumerate(items)}
    planned = plan(items, rows, Disk(**contents))
    assert planned.refused is None
    assert {change.action for change in planned.changes} == {"moved"}


def test_incomplete_listing_removes_nothing_and_moves_nothing():
    unlisted = Unlisted("sub", "cannot list /docs/sub: Permission denied")
    planned = plan([item("b.md")], [row("a.md")], disk(b__md="text of a"), unlisted=[unlisted])
    assert [verdict(change) for change in planned.changes] == [("added", "row", "same content as a.md")]
    assert planned.unlisted == (unlisted,)
    assert planned.refused is None


def test_listing_that_broke_off_removes_nothing_and_says_why():
    listing = Listing("docs", "default", "", (item("b.md", "b"),), broken=BrokenOff("unreachable", "no answer"))
    planned = plan_source(listing, [row("a.md")], fingerprints(), forbidden, RefreshSettings())
    assert [change.action for change in planned.changes] == ["added"]
    assert (planned.refused, planned.broken) == (None, listing.broken)
    assert planned.warnings == ("docs: the listing broke off, so nothing was removed: no answer",)


def test_documents_of_other_sources_are_not_missed():
    assert plan([], [row("a.md", source="archive")]).changes == ()


# --- part of a source


@pytest.mark.parametrize("prefix", ["sub", "sub/"])
def test_documents_outside_the_part_are_left_alone(prefix):
    rows = [row("a.md", "a"), row("sub/b.md", "b"), row("subway/c.md", "c")]
    planned = plan([], rows, prefix=prefix)
    assert [change.known.path for change in planned.changes] == ["sub/b.md"]


def test_move_into_the_part_is_a_copy_until_the_rest_is_listed():
    planned = plan([item("sub/b.md")], [row("a.md")], Disk(**{"sub/b.md": "text of a"}), prefix="sub")
    assert [verdict(change) for change in planned.changes] == [("added", "row", "same content as a.md")]


def test_guard_counts_the_part_alone():
    rows = [*many(100), *(row(f"sub/{number}.md", f"sub {number:05d}") for number in range(11))]
    assert "would lose 11 of 11 documents" in plan([], rows, prefix="sub").refused


@pytest.mark.parametrize(
    ("path", "prefix", "inside"),
    [
        ("a", "", True),
        ("a", "a", True),
        ("a/b", "a", True),
        ("a/b", "a/", True),
        ("ab", "a", False),
        ("a", "a/b", False),
        ("a.zip!/b", "a.zip", True),
        ("a.zip!/b.TAR!/c", "a.zip!/b.TAR", True),
        ("a!/b", "a", False),
        ("a.zip!b", "a.zip", False),
    ],
)
def test_path_is_within_a_prefix_by_whole_parts(path, prefix, inside):
    assert within(path, prefix) == inside


# --- partial listings


def kept(rows, unlisted=(), broken=None, missing=()):
    listing = Listing("docs", "default", "", (), tuple(unlisted), broken)
    planned = plan_source(listing, rows, fingerprints(), forbidden, RefreshSettings(), missing=missing)
    assert planned.changes == ()
    return [str(each) for each in planned.kept]


def test_documents_are_kept_by_the_innermost_place_that_could_not_be_seen():
    places = [Unlisted("a", "closed"), Unlisted("a/b", "shut"), Unlisted("x.md", "locked"), Unlisted("box.zip", "cut")]
    rows = [row("a/1.md"), row("a/b/2.md"), row("a/b/c/3.md"), row("x.md"), row("ab.md")]
    assert kept(rows, places, missing=["box.zip!/4.md", "a/b/5.md", "gone.md", "also.md"]) == [
        "3 documents below docs/a/b were kept: shut",
        "3 documents of docs were kept: not found, but not all of the source could be seen",
        "1 document below docs/a was kept: closed",
        "1 document at docs/x.md was kept: locked",
        "1 document below docs/box.zip was kept: cut",
    ]


@pytest.mark.parametrize(
    ("told", "detail"),
    [
        ({"unlisted": [Unlisted("", "no list")]}, "no list"),
        ({"broken": BrokenOff("unreachable", "no answer")}, "the listing broke off: no answer"),
    ],
    ids=["unlisted", "broken"],
)
def test_documents_of_a_source_that_could_not_be_seen_at_all_are_kept(told, detail):
    assert kept([row("a.md"), row("b.md")], **told) == [f"2 documents of docs were kept: {detail}"]


def test_nothing_is_kept_of_a_whole_listing_and_of_a_reindex():
    assert plan([], [row("a.md")], allow_removals=True).kept == ()
    force = Reindex("extract", lambda _: False)
    assert plan([], [row("a.md")], unlisted=[Unlisted("", "closed")], force=force).kept == ()
