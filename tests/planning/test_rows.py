"""The published row of a document for every outcome."""

from dataclasses import replace

import pytest

from parquetry import ids
from parquetry.errors import Verdict
from parquetry.model import Access
from parquetry.planning.diff import Change
from parquetry.planning.fingerprint import Fingerprint, Fingerprints
from parquetry.planning.rows import (
    Processed,
    RunStamp,
    failure_of,
    kept_row,
    new_revision,
    origin_removed,
    processed_row,
    refused_row,
    removed_row,
    rows_without_work,
)
from tests.records import NOW, THEN, failed, fingerprints, item, row, skipped

STAMP = RunStamp("run-2", NOW)
DONE = Processed(
    content_hash="hash-2",
    revision=77,
    title="New title",
    media_type="text/html",
    metadata={"language": "en"},
    extractor="web/1",
    embedder="model@8",
    fingerprint=Fingerprint("ex2", "ch2", "em2"),
    pages=2,
    characters=30,
    chunks=4,
    tokens=9,
)
DAMAGED = Verdict("fail", "damaged", "is cut short")
EMPTY = Verdict("skip", "empty", "the file has no content")


def change(known=None, origin=None, action="changed", effort="extract", listed=None):
    listed = listed or item(content="second text")
    identity = known.document_id if known else ids.document_id("default", "docs", listed.path)
    return Change(action, effort, "", identity, "default", "docs", listed, known, origin)


def refuse(before, verdict, **options):
    defaults = {"content_hash": "hash-2", "media_type": "text/markdown", "max_attempts": 3}
    return refused_row(before, "extract", verdict, fingerprints(), STAMP, **{**defaults, **options})


# --- processed


def test_new_document_has_everything_from_its_processing():
    done = processed_row(change(listed=item("sub/c.html", "second text")), DONE, STAMP)
    assert (done.document_id, done.path, done.filename) == (
        ids.document_id("default", "docs", "sub/c.html"),
        "sub/c.html",
        "c.html",
    )
    assert (done.revision, done.content_hash, done.fingerprint) == (77, "hash-2", "ex2-ch2-em2")
    assert (done.title, done.media_type, done.extractor, done.embedder) == (
        "New title",
        "text/html",
        "web/1",
        "model@8",
    )
    assert (done.pages, done.characters, done.chunks, done.tokens) == (2, 30, 4, 9)
    assert (done.status, done.error, done.attempts, done.transient, done.removed) == ("indexed", None, 0, False, False)
    assert (done.created_at, done.indexed_at, done.run_id) == (NOW, NOW, "run-2")


def test_changed_document_keeps_its_identity_and_creation():
    done = processed_row(change(known=row()), DONE, STAMP)
    assert (done.document_id, done.created_at, done.indexed_at) == (row().document_id, THEN, NOW)
    assert (done.size, done.etag) == (11, "etag-second text")


def test_recovered_document_forgets_its_failures():
    done = processed_row(change(known=failed(attempts=2, transient=True)), DONE, STAMP)
    assert (done.status, done.error, done.attempts, done.transient) == ("indexed", None, 0, False)


def test_document_without_a_title_is_called_by_its_name():
    untitled = replace(DONE, title=None)
    assert processed_row(change(listed=item("sub/Leave rules.md")), untitled, STAMP).title == "Leave rules"


def test_failed_document_whose_last_good_revision_was_renewed_is_still_failed():
    known = failed(revision=7, transient=True, attempts=2)
    done = processed_row(change(known=known, effort="rechunk"), DONE, STAMP)
    assert (done.revision, done.fingerprint) == (77, "ex2-ch2-em2")
    assert (done.status, done.error, done.attempts, done.transient) == ("failed", known.error, 2, True)


# --- refused


def test_failed_document_keeps_its_last_good_revision():
    after = refuse(change(known=row()), DAMAGED)
    assert (after.status, after.error) == ("failed", "extract/damaged: is cut short")
    assert after.revision == row().revision
    assert (after.chunks, after.characters, after.embedder, after.title) == (1, 9, "model@4", "A title")
    assert (after.etag, after.content_hash) == ("etag-second text", "hash-2")
    assert (after.attempts, after.transient) == (1, False)


def test_failed_document_is_known_to_hold_the_chunks_of_its_last_good_revision():
    """Otherwise a changed embedder skips the document, and its old vectors block every search."""
    known = row(fingerprint="ex0-ch0-em0")
    assert refuse(change(known=known), DAMAGED).fingerprint == "ex1-ch0-em0"
    assert refuse(change(known=known), EMPTY).fingerprint == "ex1-ch1-em1"
    assert refuse(change(known=failed(fingerprint="ex0-ch0-em0")), DAMAGED).fingerprint == "ex1-ch1-em1"


def test_skipped_document_loses_its_old_revision():
    after = refuse(change(known=row()), EMPTY, media_type=None)
    assert (after.status, after.error, after.revision) == ("skipped", "extract/empty: the file has no content", 0)
    assert (after.chunks, after.characters, after.tokens, after.pages, after.media_type) == (0, 0, 0, 0, None)


def test_new_document_that_fails_has_no_revision_and_its_name_for_a_title():
    after = refuse(change(listed=item("Plan.pdf")), DAMAGED)
    assert (after.status, after.revision, after.title, after.created_at) == ("failed", 0, "Plan", NOW)


@pytest.mark.parametrize(
    ("verdict", "before", "transient"),
    [
        pytest.param(Verdict("retry", "unreadable", ""), 0, True, id="passing"),
        pytest.param(Verdict("retry", "unreadable", ""), 9, True, id="passing-always-tried-again"),
        pytest.param(Verdict("fail", "timeout", ""), 0, True, id="limit-first-time"),
        pytest.param(Verdict("fail", "memory", ""), 1, True, id="limit-second-time"),
        pytest.param(Verdict("fail", "crashed", ""), 2, False, id="limit-third-time"),
        pytest.param(Verdict("fail", "damaged", ""), 0, False, id="permanent"),
        pytest.param(Verdict("skip", "no-text", ""), 0, False, id="skipped"),
    ],
)
def test_failure_is_tried_again_if_it_may_pass(verdict, before, transient):
    known = failed(attempts=before, content_hash="hash-2") if before else None
    after = refuse(change(known=known), verdict)
    assert (after.attempts, after.transient) == (before + 1, transient)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(failed(attempts=3, content_hash="hash-1"), id="other-content"),
        pytest.param(failed(attempts=3, content_hash="hash-2", fingerprint="ex0-ch1-em1"), id="other-settings"),
        pytest.param(row(content_hash="hash-2"), id="was-indexed"),
        pytest.param(skipped(attempts=3, content_hash="hash-2"), id="was-skipped"),
    ],
)
def test_attempts_count_failures_of_the_same_content_with_the_same_settings(known):
    after = refuse(change(known=known), Verdict("fail", "timeout", "took too long"))
    assert (after.attempts, after.transient) == (1, True)


def test_document_that_became_another_format_and_failed_is_planned_as_that_format():
    """Otherwise its settings seem to change in every run, and it is extracted again every time."""
    prints = Fingerprints(lambda media_type: f"of {media_type}", "ch1", "em1")
    verdict = DAMAGED
    after = refused_row(
        change(known=row()),
        "extract",
        verdict,
        prints,
        STAMP,
        content_hash="h",
        media_type="application/pdf",
        max_attempts=3,
    )
    assert after.fingerprint == str(prints.of(after.media_type)) == "of application/pdf-ch1-em1"
    unread = refused_row(
        change(known=row()), "fetch", verdict, prints, STAMP, content_hash="", media_type=None, max_attempts=3
    )
    assert unread.fingerprint == str(prints.of(unread.media_type)) == "of text/markdown-ch1-em1"


# --- nothing to process


def test_moved_document_takes_over_what_is_stored_and_leaves_a_tombstone():
    moved = change(origin=row("a.md", metadata={"x": 1}), action="moved", effort="row", listed=item("b.md"))
    new, old = rows_without_work(moved, STAMP)
    assert (new.document_id, new.path, new.filename, new.uri) == (
        moved.document_id,
        "b.md",
        "b.md",
        "file:///docs/b.md",
    )
    assert (new.revision, new.metadata, new.status) == (row().revision, {"x": 1}, "indexed")
    assert (old.document_id, old.path, old.removed, old.run_id) == (row().document_id, "a.md", True, "run-2")
    assert old.error == "scan/moved: now b.md"


def test_copied_document_leaves_the_original_alone():
    copied = change(origin=row("a.md"), action="added", effort="row", listed=item("b.md"))
    (new,) = rows_without_work(copied, STAMP)
    assert (new.revision, new.created_at) == (row().revision, NOW)
    assert origin_removed(copied, STAMP) == []


def test_document_called_by_its_name_is_called_by_its_new_name_after_a_move():
    named = row("a.md", title="a")
    moved = change(origin=named, action="moved", effort="row", listed=item("sub/b.md"))
    assert rows_without_work(moved, STAMP)[0].title == "b"
    titled = change(origin=row("a.md"), action="moved", effort="row", listed=item("sub/b.md"))
    assert rows_without_work(titled, STAMP)[0].title == "A title"


def test_document_with_new_permissions_changes_nothing_else():
    access = Access("individual", user_id="ada", tags=("x",))
    kept = change(known=row(), action="permissions", effort="row", listed=item(access=access))
    (new,) = rows_without_work(kept, STAMP)
    assert new == replace(row(), access=access, indexed_at=NOW, run_id="run-2")


@pytest.mark.parametrize("known", [failed(transient=True, attempts=2), skipped()])
def test_touched_document_stays_refused_for_the_same_reason(known):
    (new,) = rows_without_work(change(known=known, action="unchanged", effort="row"), STAMP)
    assert (new.status, new.error, new.attempts, new.transient) == (
        known.status,
        known.error,
        known.attempts,
        known.transient,
    )


def test_removed_document_leaves_a_tombstone_of_its_last_row():
    gone = Change("removed", "row", "", row().document_id, "default", "docs", None, row())
    assert rows_without_work(gone, STAMP) == [removed_row(row(), STAMP, "scan/gone: ")]
    tombstone = replace(row(), removed=True, run_id="run-2", indexed_at=NOW, error="remove/asked-for: by hand")
    assert removed_row(row(), STAMP, "remove/asked-for: by hand") == tombstone


def test_there_is_nothing_to_keep_of_a_document_never_stored():
    with pytest.raises(ValueError, match="nothing stored"):
        kept_row(change(), STAMP)


# --- reports


def test_failure_tells_stage_reason_and_detail():
    refused = failed(error="extract/damaged: page 3: no end", attempts=2)
    told = failure_of(refused, known=True)
    assert (told.stage, told.reason, told.detail, told.attempts) == ("extract", "damaged", "page 3: no end", 2)
    assert (told.status, told.uri, told.known) == ("failed", "file:///docs/a.md", True)
    assert failure_of(skipped()).status == "skipped"


def test_failure_without_a_recorded_reason_says_so():
    assert failure_of(failed(error=None)).reason == "unknown"


def test_revision_belongs_to_one_document_in_one_run():
    first = new_revision(change(), STAMP)
    assert first == new_revision(change(), STAMP) > 0
    others = {new_revision(change(listed=item("b.md")), STAMP), new_revision(change(), RunStamp("run-3", NOW))}
    assert len({first, *others}) == 3
