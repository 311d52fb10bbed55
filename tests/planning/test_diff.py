"""Every decision of the planner: the work that follows from a listing and the published rows."""

import pytest

from parquetry import ids
from parquetry.model import Access
from parquetry.planning.diff import Reindex
from parquetry.planning.fingerprint import Fingerprints
from tests.planning.planned import Disk, disk, only, plan, verdict
from tests.records import failed, fingerprints, item, row, skipped

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
    force = Reindex(effort, lambda known: known.path in ("a.md", "gone.md"))
    change = only(plan([item("a.md", "a"), item("b.md", "b"), item("new.md", "d")], rows, force=force))
    assert verdict(change) == ("changed", effort, "reindex asked for")
    assert change.known.path == "a.md"


@pytest.mark.parametrize("known", [failed(), skipped()])
def test_reindex_from_stored_text_extracts_what_is_not_stored(known):
    change = only(plan([item()], [known], force=Reindex("rechunk", lambda known: True)))
    assert change.effort == "extract"
