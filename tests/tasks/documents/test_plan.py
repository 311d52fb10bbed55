"""A plan keeps little of a corpus in memory, and is the same as with the whole corpus in memory."""

import gc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry import ids
from parquetry.errors import TransientError
from parquetry.model import Access, DocumentRow, Unlisted
from parquetry.planning.diff import Reindex, plan_source
from parquetry.planning.report import count_documents
from parquetry.planning.tally import TalliedChanges, tally_of
from parquetry.settings.sections import RefreshSettings, Settings
from parquetry.settings.source import SourceSettings
from parquetry.sources.registry import Scope
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents import listed_items, spooled
from parquetry.tasks.documents.listing import list_scopes
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.plan import plan_refresh
from parquetry.tasks.engine.retries import Retries
from tests.records import content_hash, failed, fingerprints, item, row, skipped

PATHS = [f"{folder}{name}{extension}" for folder in ("", "sub/") for name in "abc" for extension in (".md", ".txt")]
CONTENTS = ["one", "two", "the third"]


class Place:
    """A source with a scripted listing and scripted contents."""

    def __init__(self, items, unlisted=(), breaks_off=False):
        self.items, self.unlisted, self.breaks_off = items, unlisted, breaks_off
        self.hashed = []

    def scan(self, prefix):
        yield from (each for each in self.items if each.path.startswith(prefix))
        yield from self.unlisted
        if self.breaks_off:
            raise TransientError("unreachable", "no answer")

    def hash(self, path):
        self.hashed.append(path)
        (content,) = {
            each.etag.removeprefix("touched-").removeprefix("etag-") for each in self.items if each.path == path
        }
        return content_hash(content)


def scope(name="docs", prefix=""):
    return Scope(SourceSettings(name=name, uri=f"shelf://{name}"), "default", prefix)


class Rows:
    """Current rows in the form that storage returns."""

    def __init__(self, rows):
        self._rows = rows

    def outlines(self, paths=None):
        return (each for each in self._rows if paths is None or each.path in paths)

    def each_named(self, document_ids):
        wanted = set(document_ids)
        return (each for each in self._rows if each.document_id in wanted)

    def holding(self, content_hashes):
        wanted = set(content_hashes)
        return [each for each in self._rows if each.content_hash in wanted]


def planned(current, scopes, prints, force=None):
    models = {"default": Model("model@4", prints, Free)}
    given = Settings(refresh=RefreshSettings(max_removed_documents=2))
    return plan_refresh(given, scopes, current, models, force=force, retries=Retries(1, lambda _: None))


class Free:
    price_per_million_tokens = 0.0


def told(change):
    origin = change.origin.document_id if change.origin else None
    return change.document_id, change.action, change.effort, change.reason, change.item, change.known, origin


contents = st.sampled_from(CONTENTS)
listed = st.builds(
    lambda path, content, touched, access, elsewhere: item(
        path,
        content,
        access=access,
        etag=f"touched-etag-{content}" if touched else f"etag-{content}",
        uri=f"file:///elsewhere/{path}" if elsewhere else f"file:///docs/{path}",
    ),
    st.sampled_from(PATHS),
    contents,
    st.integers(0, 4).map(lambda number: not number),
    st.sampled_from([Access(), Access(), Access(), Access("organization", "acme")]),
    st.integers(0, 6).map(lambda number: not number),
)
published = st.builds(
    lambda path, content, made, source, print_: made(path, content, source=source, fingerprint=print_),
    st.sampled_from(PATHS),
    contents,
    st.sampled_from([row, row, row, row, failed, skipped]),
    st.sampled_from(["docs", "docs", "archive"]),
    st.sampled_from(["ex1-ch1-em1"] * 4 + ["ex1-ch2-em1", "ex0-ch1-em1"]),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(listed, unique_by=lambda each: each.path, max_size=10),
    st.lists(published, unique_by=lambda each: each.document_id, max_size=12),
    st.sampled_from(["", "", "sub/"]),
    st.sampled_from(["complete", "complete", "complete", "unlisted", "broken"]),
)
def test_plan_is_the_one_that_all_rows_in_memory_give(items, rows, prefix, end):
    place = Place(items, [Unlisted("sub", "denied")] if end == "unlisted" else [], end == "broken")
    found = planned(Rows(rows), [(scope(prefix=prefix), place)], fingerprints())
    (plan,) = found.sources
    (listing,) = list_scopes([(scope(prefix=prefix), place)], Retries(1, lambda _: None))
    whole = plan_source(listing, rows, fingerprints(), place.hash, RefreshSettings(max_removed_documents=2))
    assert sorted(map(told, work(plan)), key=repr) == sorted(map(told, work(whole)), key=repr)
    assert count_documents([plan]) == count_documents([whole])
    assert (plan.refused, plan.warnings) == (whole.refused, whole.warnings)
    assert set(plan.kept) == set(whole.kept)
    assert sum(kept.documents for kept in plan.kept) == missing(items, rows, prefix) * (end != "complete")
    touched = {each.known.document_id for each in work(plan) if each.known}
    assert touched <= {each.document_id for each in found.known}


def test_plan_in_a_file_is_the_one_in_memory(monkeypatch):
    """New, changed, moved, copied and removed documents of two scopes."""
    rows = [row(path, path) for path in PATHS] + [row("elsewhere.md", "one", source="archive")]
    items = [item(path, path) for path in PATHS[3:]]
    items += [item(PATHS[0], "edited"), item("moved.md", PATHS[2]), item("copy.md", "one"), item("new.md", "new")]

    def plans():
        scopes = [(scope(), Place(items)), (scope("archive"), Place([item("new.txt", "new")]))]
        found = planned(Rows(rows), scopes, fingerprints())
        return [list(map(told, found.changes)), *([each.unchanged, each.refused] for each in found.sources)], found

    expected, in_memory = plans()
    for module in (spooled, listed_items):
        monkeypatch.setattr(module, "IN_MEMORY", 1)
    found, in_file = plans()
    assert found == expected
    assert sorted(in_file.known, key=repr) == sorted(in_memory.known, key=repr)
    assert {each[1] for each in found[0]} == {"added", "changed", "moved", "removed"}
    assert count_documents(in_file.sources) == count_documents(in_memory.sources)
    assert isinstance(in_file.sources[0].changes, TalliedChanges)
    for there, here in zip(in_file.sources, in_memory.sources, strict=True):
        assert tally_of(there.changes) == tally_of(here.changes)
    assert in_file.to_do == in_memory.to_do > 0


def test_plan_that_changes_many_documents_holds_none_of_their_rows(lake, monkeypatch):
    monkeypatch.setattr(spooled, "IN_MEMORY", 5)
    lake.publish(lake.snapshot(), [row(f"{number}.md", str(number)) for number in range(40)], "run-1")
    items = [item(f"{number}.md", str(number)) for number in range(40)]
    gc.collect()
    before = sum(isinstance(each, DocumentRow) for each in gc.get_objects())
    found = planned(published_in(lake), [(scope(), Place(items))], fingerprints(chunking="ch2"))
    gc.collect()
    held = sum(isinstance(each, DocumentRow) for each in gc.get_objects()) - before
    assert [change.effort for change in found.changes] == ["rechunk"] * 40
    assert len(found.known) == 40
    assert held == 0


def missing(items, rows, prefix):
    paths = {each.path for each in rows if each.source == "docs" and each.path.startswith(prefix)}
    return len(paths - {each.path for each in items})


def work(plan):
    return [change for change in plan.changes if change.effort != "nothing"]


def published_in(lake):
    return CurrentRows(lake.snapshot(), {"default"})


@pytest.fixture
def lake(tmp_path):
    return Lake(str(tmp_path / "corpus"), create=True)


def test_unchanged_documents_are_counted_and_take_no_row_and_no_item(lake):
    lake.publish(lake.snapshot(), [row(path, path) for path in PATHS], "run-1")
    place = Place([item(path, path) for path in PATHS[1:]] + [item("new.md", "new")])
    found = planned(published_in(lake), [(scope(), place)], fingerprints())
    (plan,) = found.sources
    assert [told(change)[:2] for change in plan.changes] == [
        (ids.document_id("default", "docs", "new.md"), "added"),
        (ids.document_id("default", "docs", PATHS[0]), "removed"),
    ]
    assert (plan.unchanged, [each.path for each in found.known]) == (len(PATHS) - 1, [PATHS[0]])
    assert plan.listed == len(PATHS) + 1
    assert place.hashed == []


def test_document_of_two_scopes_that_changes_between_their_listings_is_not_taken_for_gone(lake):
    """One scope contains the other, and the document is unchanged in only one of the listings."""
    lake.publish(lake.snapshot(), [row("sub/a.md"), row("b.md", "b")], "run-1")
    before, after = Place([item("sub/a.md"), item("b.md", "b")]), Place([item("sub/a.md", "edited")])
    found = planned(published_in(lake), [(scope(), before), (scope(prefix="sub/"), after)], fingerprints())
    assert [[change.action for change in plan.changes] for plan in found.sources] == [[], ["changed"]]


def test_source_in_which_all_is_settled_is_not_empty(lake):
    lake.publish(lake.snapshot(), [row("a.md")], "run-1")
    whole, nothing = (
        planned(published_in(lake), [(scope(), Place(items))], fingerprints()) for items in ([item()], [])
    )
    assert (whole.empty, nothing.empty) == ((), ())
    other = planned(published_in(lake), [(scope("other"), Place([]))], fingerprints())
    assert len(other.empty) == 1


def test_plan_of_a_part_of_a_source_holds_no_row_of_the_rest(lake):
    lake.publish(lake.snapshot(), [row("sub/a.md"), row("b.md", "b")], "run-1")
    found = planned(published_in(lake), [(scope(prefix="sub/"), Place([]))], fingerprints())
    assert [each.path for each in found.known] == ["sub/a.md"]


class Counted(CurrentRows):
    """Current rows that note which of them were read."""

    def outlines(self, paths=None):
        for each in super().outlines(paths):
            self.read = [*getattr(self, "read", []), each.path]
            yield each


def test_plan_of_named_documents_reads_no_row_of_the_others(lake):
    """A service plans one document at a time, in a corpus of any size."""
    lake.publish(lake.snapshot(), [row(f"{number}.md", str(number), size=50) for number in range(9)], "run-1")
    items = [item("3.md", "3"), item("4.md", "edited"), item("new.md", "7", size=50), item("other.md", "other", size=7)]
    named = replace(scope(), paths=frozenset(["3.md", "4.md", "5.md", "new.md", "other.md"]))
    current = Counted(lake.snapshot(), {"default"})
    found = planned(current, [(named, Place(items))], fingerprints())
    assert set(current.read) == {"3.md", "4.md", "5.md"}
    (plan,) = found.sources
    assert [(each.reason, (each.item or each.known).path) for each in work(plan)] == [
        ("content changed", "4.md"),
        ("same content as 7.md", "new.md"),
        ("new", "other.md"),
        ("gone from its source", "5.md"),
    ]
    assert plan.unchanged == 1
    assert [each.assumed for each in found.estimate.sources] == [0]


def test_content_of_another_namespace_is_not_taken_over(lake):
    lake.publish(lake.snapshot(), [row("x.md", "one", namespace="hr"), row("y.md", "two")], "run-1")
    place = Place([item("y.md", "two"), item("copy.md", "one")])
    current = CurrentRows(lake.snapshot(), {"default", "hr"})
    (plan,) = planned(current, [(scope(), place)], fingerprints()).sources
    assert [change.reason for change in plan.changes] == ["new"]


def test_new_document_takes_over_the_content_of_a_settled_one_of_another_source(lake):
    lake.publish(lake.snapshot(), [row("x.md", "one", source="archive"), row("a.md", "two")], "run-1")
    place = Place([item("a.md", "two"), item("copy.md", "one"), item("again.md", "two")])
    (plan,) = planned(published_in(lake), [(scope(), place)], fingerprints()).sources
    assert [(change.effort, change.reason) for change in plan.changes] == [
        ("row", "same content as x.md"),
        ("row", "same content as a.md"),
    ]
    assert place.hashed == ["copy.md", "again.md"]


def test_reindex_looks_at_the_documents_that_it_is_for(lake):
    lake.publish(lake.snapshot(), [row("a.md"), row("b.md", "b")], "run-1")
    force = Reindex("extract", lambda each: each.path == "b.md")
    (plan,) = planned(
        published_in(lake), [(scope(), Place([item("a.md"), item("b.md", "b")]))], fingerprints(), force
    ).sources
    assert [(change.known.path, change.reason) for change in plan.changes] == [("b.md", "reindex asked for")]
    assert count_documents([plan]).scanned == 1


def test_reindex_reads_no_new_document(lake):
    lake.publish(lake.snapshot(), [row("a.md", "one")], "run-1")
    place = Place([item("a.md", "one"), item("new.md", "two")])
    (plan,) = planned(
        published_in(lake), [(scope(), place)], fingerprints(), Reindex("extract", lambda _: True)
    ).sources
    assert ([change.item.path for change in plan.changes], place.hashed) == (["a.md"], [])


def test_document_with_two_current_rows_is_not_removed(lake):
    lake.publish(lake.snapshot(), [row("a.md"), row("a.md", title="twice")], "run-1")
    (plan,) = planned(published_in(lake), [(scope(), Place([item("a.md")]))], fingerprints()).sources
    assert [change.action for change in plan.changes] == ["unchanged"]


def test_plan_of_a_corpus_that_does_not_exist_yet(tmp_path):
    models = {"default": Model("model@4", fingerprints(), Free)}
    place = Place([item("a.md")])
    (plan,) = plan_refresh(Settings(), [(scope(), place)], CurrentRows(None), models).sources
    assert [change.action for change in plan.changes] == ["added"]


@pytest.mark.parametrize(
    ("content", "path", "foreseen"),
    [("kept", "a.md", []), ("new", "a.md", ["a.md"]), ("kept", "b.md", ["b.md"])],
)
def test_what_reads_documents_is_told_while_the_plan_goes_on(lake, content, path, foreseen):
    """A document that is gone needs no reading; one that moved might have another content."""
    lake.publish(lake.snapshot(), [row("a.md", "kept")], "run-1")
    current, models, heard = published_in(lake), {"default": Model("model@4", fingerprints(), Free)}, []
    place = Place([item(path, content)])
    plan_refresh(Settings(), [(scope(), place)], current, models, foreseen=heard.extend)
    plan_refresh(Settings(), [(scope(), Place([]))], current, models, foreseen=heard.extend)
    assert [item.path for listing in heard for item in listing.items] == foreseen
