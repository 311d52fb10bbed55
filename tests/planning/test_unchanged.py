"""Unchanged documents need no row and no item in memory, and no other document is taken for unchanged."""

import tracemalloc

import pytest

from parquetry import ids
from parquetry.model import Access
from parquetry.planning.outline import DocumentOutline
from parquetry.planning.unchanged import ScanPass, UnchangedIndex
from tests.records import item, row


def scan_pass(*rows):
    unchanged = UnchangedIndex()
    for each in rows:
        unchanged.add(each)
    return ScanPass(unchanged)


NOTHING = frozenset()


def hashes(*paths):
    return frozenset(map(ids.memory_hash, paths))


def test_document_that_is_listed_as_it_is_published_needs_nothing():
    seen = scan_pass(row("a.md"), row("b.md", "b"))
    assert seen.meets(item("a.md"))
    assert seen.meets(item("b.md", "b"))
    assert (seen.count, seen.needing_work(complete=True)) == (2, NOTHING)


@pytest.mark.parametrize(
    "changed",
    [
        {"etag": "other"},
        {"uri": "file:///elsewhere/a.md"},
        {"access": Access("individual", user_id="u")},
        {"access": Access("organization", "u")},
        {"access": Access(tags=("u",))},
        {"access": Access(tags=("u", "v"))},
        # A character moved from the end of one part to the beginning of the next is a change.
        {"uri": "file:///docs/a.mde", "etag": "tag-text of a"},
    ],
    ids=lambda changed: ",".join(f"{name}={value}" for name, value in changed.items()),
)
def test_document_that_differs_is_not_settled(changed):
    seen = scan_pass(row("a.md"))
    assert not seen.meets(item("a.md", **changed))
    assert (seen.count, seen.needing_work(complete=False)) == (0, hashes("a.md"))


def test_same_permissions_in_another_order_of_fields_are_told_apart():
    seen = scan_pass(
        row("a.md", access=Access("organization", "x")), row("b.md", access=Access("individual", "x", "y"))
    )
    assert seen.meets(item("a.md", access=Access("organization", "x")))
    assert not seen.meets(item("b.md", access=Access("individual", "y", "x")))


def test_new_document_is_not_settled_and_opens_nothing():
    seen = scan_pass(row("a.md"))
    assert not seen.meets(item("b.md"))
    assert seen.needing_work(complete=False) == NOTHING


def test_nothing_is_settled_in_an_empty_corpus():
    seen = scan_pass()
    assert not seen.meets(item("a.md"))
    assert (seen.count, seen.needing_work(complete=True)) == (0, NOTHING)


def test_document_that_was_not_met_is_gone_only_from_a_complete_listing():
    seen = scan_pass(row("a.md"), row("b.md", "b"))
    assert seen.meets(item("a.md"))
    assert seen.needing_work(complete=False) == NOTHING
    assert seen.needing_work(complete=True) == hashes("b.md")


@pytest.mark.parametrize("same_first", [True, False])
def test_document_that_is_listed_twice_counts_as_it_was_listed_last(same_first):
    seen = scan_pass(row("a.md"))
    listed = [item("a.md"), item("a.md", etag="other")]
    met = [seen.meets(each) for each in (listed if same_first else reversed(listed))]
    assert met == [same_first, not same_first]
    assert (seen.count, seen.needing_work(complete=True)) == ((0, hashes("a.md")) if same_first else (1, NOTHING))


def test_each_try_begins_anew():
    seen = scan_pass(row("a.md"), row("b.md", "b"))
    seen.begin()
    seen.meets(item("a.md"))
    seen.begin()
    seen.meets(item("b.md", "b"))
    assert (seen.count, seen.needing_work(complete=True)) == (1, hashes("a.md"))


def test_tries_that_all_broke_off_count_together_and_a_change_outweighs_what_was_before():
    seen = scan_pass(row("a.md"), row("b.md", "b"), row("c.md", "c"))
    seen.begin()
    seen.meets(item("a.md"))
    seen.meets(item("c.md", etag="other"))
    seen.begin()
    seen.meets(item("b.md", "b"))
    seen.meets(item("c.md", "c"))
    seen.give_up()
    assert (seen.count, seen.needing_work(complete=False)) == (2, hashes("c.md"))


def test_document_that_a_damaged_corpus_has_twice_is_looked_at_and_not_taken_for_gone():
    """Otherwise the row that was not matched would be removed."""
    seen = scan_pass(row("a.md"), row("a.md", sequence=2), row("b.md", "b"))
    assert not seen.meets(item("a.md"))
    assert seen.meets(item("b.md", "b"))
    assert (seen.count, seen.needing_work(complete=True)) == (1, hashes("a.md"))


def test_many_documents_are_each_found():
    paths = [f"{number}.md" for number in range(3000)]
    seen = scan_pass(*(row(path, path) for path in paths))
    assert all(seen.meets(item(path, path)) for path in reversed(paths) if path != "77.md")
    assert (seen.count, seen.needing_work(complete=True)) == (2999, hashes("77.md"))


@pytest.mark.slow
def test_document_takes_some_twenty_bytes_of_memory():
    """Ten million of them take 200 MB."""
    like, count = row("a.md"), 100_000
    outline = DocumentOutline(*(getattr(like, name) for name in DocumentOutline._fields))
    scan_pass(like).begin()
    tracemalloc.start()
    unchanged = UnchangedIndex()
    for number in range(count):
        unchanged.add(outline._replace(path=f"{number}.md"))
    ScanPass(unchanged).begin()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 16 * count < most < 26 * count


def test_paths_with_the_same_hash_are_looked_at(monkeypatch):
    """A document that is gone would otherwise be taken for the one that is listed."""
    monkeypatch.setattr(ids, "memory_hash", lambda *parts: 7 if len(parts) == 1 else hash(parts))
    seen = scan_pass(row("a.md"), row("b.md", "b"))
    assert not seen.meets(item("a.md"))
    assert (seen.count, seen.needing_work(complete=True)) == (0, {7})


def test_listed_name_that_is_no_text_is_not_settled_and_breaks_no_listing_off():
    assert not scan_pass(row("a.md")).meets(item("a\udcff.md"))
