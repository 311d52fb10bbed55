"""Every decision of the planner: what a listing and the published rows say has to be done."""

import pytest

from knowledge import ids
from knowledge.changes import Force, plan_source
from knowledge.fingerprint import Fingerprints
from knowledge.model import Access, BrokenOff, Listing, Unlisted
from knowledge.settings import RefreshSettings
from knowledge.sources.paths import within
from tests.records import content_hash, failed, fingerprints, item, row, skipped


class Disk:
    """The hashing that the planner is handed: content by path, and a record of what was read."""

    def __init__(self, **contents):
        self.contents = contents
        self.read = []

    def __call__(self, path):
        self.read.append(path)
        return content_hash(self.contents[path]) if path in self.contents else None


def forbidden(path):
    raise AssertionError(f"{path} was read")


def plan(items, rows, hash_of=forbidden, *, prefix="", unlisted=(), prints=None, limits=None, **options):
    listing = Listing("docs", "default", prefix, tuple(items), tuple(unlisted))
    return plan_source(listing, rows, prints or fingerprints(), hash_of, limits or RefreshSettings(), **options)


def only(planned):
    (change,) = planned.changes
    return change


def verdict(change):
    return change.action, change.effort, change.reason


def disk(**contents):
    return Disk(**{path.replace("__", "."): content for path, content in contents.items()})


# --- one document


def test_new_document_is_extracted_without_being_hashed():
    change = only(plan([item("a.md")], []))
    assert verdict(change) == ("added", "extract", "new")
    assert change.document_id == ids.document_id("default", "docs", "a.md")
    assert (change.known, change.origin, change.base) == (None, None, None)


def test_unchanged_document_is_not_even_read():
    change = only(plan([item("a.md")], [row("a.md")]))
    assert verdict(change) == ("unchanged", "nothing", "unchanged")


def test_touched_document_costs_a_hash_and_a_row():
    reader = disk(a__md="text of a")
    change = only(plan([item("a.md", etag="other")], [row("a.md")], reader))
    assert verdict(change) == ("unchanged", "row", "touched, same content")
    assert reader.read == ["a.md"]


def test_edited_document_of_the_same_size_is_extracted():
    change = only(plan([item("a.md", "text of b")], [row("a.md")], disk(a__md="text of b")))
    assert verdict(change) == ("changed", "extract", "content changed")


def test_edited_document_of_another_size_is_extracted_without_being_hashed():
    change = only(plan([item("a.md", "another text")], [row("a.md")]))
    assert verdict(change) == ("changed", "extract", "content changed")


def test_touched_document_that_cannot_be_hashed_now_is_extracted():
    change = only(plan([item("a.md", etag="other")], [row("a.md")], disk()))
    assert verdict(change) == ("changed", "extract", "content changed")


def test_document_with_new_permissions_costs_a_row():
    access = Access("organization", "acme")
    change = only(plan([item("a.md", access=access)], [row("a.md")]))
    assert verdict(change) == ("permissions", "row", "permissions changed")


def test_touched_document_with_new_permissions_counts_as_permissions():
    touched = item("a.md", etag="other", access=Access(tags=("new",)))
    change = only(plan([touched], [row("a.md")], disk(a__md="text of a")))
    assert verdict(change) == ("permissions", "row", "permissions changed")


def test_document_whose_source_is_mounted_elsewhere_is_moved_by_its_row():
    change = only(plan([item("a.md", uri="file:///mnt/a.md")], [row("a.md")]))
    assert verdict(change) == ("moved", "row", "moved from file:///docs/a.md")
    assert change.origin is None


def test_document_that_is_gone_is_removed_after_the_others():
    planned = plan([item("b.md", "b")], [row("a.md"), row("b.md", "b")])
    assert [verdict(change)[:2] for change in planned.changes] == [("unchanged", "nothing"), ("removed", "row")]
    assert planned.changes[1].known == row("a.md")
    assert planned.changes[1].item is None


# --- settings


@pytest.mark.parametrize(
    ("changed", "effort", "reason"),
    [
        ({"extraction": "ex2"}, "extract", "extraction settings changed"),
        ({"chunking": "ch2"}, "rechunk", "chunking settings changed"),
        ({"embedding": "em2"}, "rechunk", "embedding settings changed"),
        ({"extraction": "ex2", "embedding": "em2"}, "extract", "extraction settings changed"),
        ({"chunking": "ch2", "embedding": "em2"}, "rechunk", "chunking settings changed"),
    ],
)
def test_changed_setting_redoes_from_the_stage_that_it_concerns(changed, effort, reason):
    change = only(plan([item("a.md")], [row("a.md")], prints=fingerprints(**changed)))
    assert verdict(change) == ("changed", effort, reason)


def test_extraction_setting_of_another_format_redoes_nothing():
    prints = Fingerprints(lambda media_type: "ex2" if media_type == "application/pdf" else "ex1", "ch1", "em1")
    rows = [row("a.md"), row("b.pdf", "b", media_type="application/pdf")]
    planned = plan([item("a.md"), item("b.pdf", "b")], rows, prints=prints)
    assert [change.effort for change in planned.changes] == ["nothing", "extract"]


def test_touched_document_under_changed_settings_is_redone_from_its_stored_text():
    change = only(plan([item("a.md", etag="x")], [row()], disk(a__md="text of a"), prints=fingerprints(chunking="ch2")))
    assert verdict(change) == ("changed", "rechunk", "chunking settings changed")


def test_row_with_an_unreadable_fingerprint_is_extracted():
    change = only(plan([item("a.md")], [row("a.md", fingerprint="from an older program")]))
    assert change.effort == "extract"


# --- moves and copies


def test_moved_document_keeps_what_is_stored():
    planned = plan([item("sub/b.md")], [row("a.md")], disk(**{"sub/b.md": "text of a"}))
    change = only(planned)
    assert verdict(change) == ("moved", "row", "moved from a.md")
    assert change.origin == change.base == row("a.md")
    assert change.known is None
    assert change.document_id == ids.document_id("default", "docs", "sub/b.md")


@pytest.mark.parametrize(("changed", "effort"), [({"chunking": "ch2"}, "rechunk"), ({"extraction": "ex2"}, "extract")])
def test_moved_document_under_changed_settings_is_redone_from_what_is_stored(changed, effort):
    change = only(plan([item("b.md")], [row("a.md")], disk(b__md="text of a"), prints=fingerprints(**changed)))
    assert (change.action, change.effort) == ("moved", effort)
    assert change.base == row("a.md")


def test_copied_document_shares_the_revision_and_removes_nothing():
    planned = plan([item("a.md"), item("b.md")], [row("a.md")], disk(b__md="text of a"))
    assert [verdict(change) for change in planned.changes] == [
        ("unchanged", "nothing", "unchanged"),
        ("added", "row", "same content as a.md"),
    ]
    assert planned.changes[1].origin == row("a.md")


def test_two_moves_of_one_content_take_one_document_each_and_a_third_is_a_copy():
    rows = [row("a.md"), row("b.md")]
    names = ("x.md", "y.md", "z.md")
    planned = plan([item(name) for name in names], rows, Disk(**dict.fromkeys(names, "text of a")))
    assert [change.action for change in planned.changes] == ["moved", "moved", "added"]
    assert {change.origin.path for change in planned.changes[:2]} == {"a.md", "b.md"}
    assert planned.changes[2].effort == "row"


def test_content_that_came_from_another_source_is_taken_over_and_stays_there():
    change = only(plan([item("b.md")], [row("a.md", source="archive")], disk(b__md="text of a")))
    assert verdict(change) == ("added", "row", "same content as a.md")
    assert change.origin.source == "archive"


@pytest.mark.parametrize(
    ("path", "old"),
    [
        pytest.param("b.txt", row("a.md"), id="other-extension"),
        pytest.param("b.md", failed("a.md"), id="failed"),
        pytest.param("b.md", skipped("a.md"), id="skipped"),
    ],
)
def test_content_that_would_be_read_differently_is_no_move(path, old):
    planned = plan([item(path)], [old], Disk(**{path: "text of a"}))
    assert [change.action for change in planned.changes] == ["added", "removed"]
    assert planned.changes[0].effort == "extract"


def test_same_size_with_other_content_is_no_move():
    planned = plan([item("b.md", "text of b")], [row("a.md")], disk(b__md="text of b"))
    assert [change.action for change in planned.changes] == ["added", "removed"]


def test_empty_files_are_never_taken_for_each_other():
    planned = plan([item("b.md", "")], [row("a.md", "")])
    assert [change.action for change in planned.changes] == ["added", "removed"]


def test_move_is_not_seen_where_reading_is_dear():
    planned = plan([item("b.md")], [row("a.md")], lambda path: None)
    assert [change.action for change in planned.changes] == ["added", "removed"]


def test_swapped_documents_are_both_changed_and_none_removed():
    rows = [row("a.md", "one"), row("b.md", "two")]
    items = [item("a.md", "two", etag="1"), item("b.md", "one", etag="2")]
    planned = plan(items, rows, disk(a__md="two", b__md="one"))
    assert [change.action for change in planned.changes] == ["changed", "changed"]


# --- failures


@pytest.mark.parametrize(
    ("known", "effort"),
    [
        pytest.param(failed(), "nothing", id="permanent"),
        pytest.param(failed(transient=True), "extract", id="transient"),
        pytest.param(skipped(), "nothing", id="skipped"),
        pytest.param(failed(fingerprint="ex1-ch9-em9"), "nothing", id="failed-under-other-chunking"),
        pytest.param(failed(revision=7, fingerprint="ex1-ch9-em1"), "rechunk", id="last-good-under-other-chunking"),
        pytest.param(failed(revision=7, fingerprint="ex1-ch1-em9"), "rechunk", id="last-good-under-other-embedding"),
        pytest.param(
            failed(revision=7, fingerprint="ex1-ch1-em9", transient=True), "rechunk", id="last-good-before-trying-again"
        ),
        pytest.param(skipped(fingerprint="ex1-ch9-em9"), "nothing", id="skipped-under-other-chunking"),
        pytest.param(failed(fingerprint="ex9-ch1-em1"), "extract", id="failed-under-other-extraction"),
        pytest.param(skipped(fingerprint="ex9-ch1-em1"), "extract", id="skipped-under-other-extraction"),
    ],
)
def test_refused_document_is_tried_again_only_if_that_may_help(known, effort):
    assert only(plan([item()], [known])).effort == effort


def test_document_tried_again_says_after_what():
    change = only(plan([item()], [failed(transient=True, error="fetch/unreadable: no permission")]))
    assert verdict(change) == ("changed", "extract", "tried again after: fetch/unreadable: no permission")


def test_failed_document_with_new_content_is_extracted():
    assert only(plan([item(content="repaired text")], [failed()])).effort == "extract"


def test_failed_document_that_was_never_read_is_not_compared_by_hash():
    change = only(plan([item(etag="other")], [failed(content_hash="")]))
    assert verdict(change) == ("changed", "extract", "content changed")


# --- what may be removed


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
    """An empty mount looks like it."""
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


# --- what could not be seen


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
    force = Force("extract", lambda _: False)
    assert plan([], [row("a.md")], unlisted=[Unlisted("", "closed")], force=force).kept == ()


# --- rehash


def test_rehash_reads_what_no_token_tells():
    same, edited = row("same.md", "one"), row("edited.md", "two")
    hash_of = disk(same__md="one", edited__md="six")
    items = [item("same.md", "one"), item("edited.md", "two")]
    changes = plan(items, [same, edited], hash_of, rehash=True).changes
    assert [verdict(change) for change in changes] == [
        ("unchanged", "nothing", "unchanged"),
        ("changed", "extract", "content changed"),
    ]


def test_rehash_of_a_document_that_cannot_be_read_leaves_it_to_be_read_again():
    change = only(plan([item("a.md")], [row("a.md")], disk(), rehash=True))
    assert verdict(change) == ("changed", "extract", "its bytes cannot be read now")


def test_rehash_does_not_read_what_was_never_read():
    change = only(plan([item("a.md")], [skipped("a.md", content_hash="")], rehash=True))
    assert verdict(change) == ("unchanged", "nothing", "unchanged")


def test_rehash_of_a_failed_document_does_not_try_it_again():
    change = only(plan([item("a.md")], [failed("a.md")], disk(a__md="text of a"), rehash=True))
    assert (change.action, change.effort) == ("unchanged", "nothing")


# --- reindex


@pytest.mark.parametrize("effort", ["extract", "rechunk"])
def test_reindex_redoes_what_is_chosen_and_nothing_else(effort):
    rows = [row("a.md", "a"), row("b.md", "b"), row("gone.md", "c")]
    force = Force(effort, lambda known: known.path in ("a.md", "gone.md"))
    change = only(plan([item("a.md", "a"), item("b.md", "b"), item("new.md", "d")], rows, force=force))
    assert verdict(change) == ("changed", effort, "reindex asked for")
    assert change.known.path == "a.md"


@pytest.mark.parametrize("known", [failed(), skipped()])
def test_reindex_from_stored_text_extracts_what_is_not_stored(known):
    change = only(plan([item()], [known], force=Force("rechunk", lambda known: True)))
    assert change.effort == "extract"
