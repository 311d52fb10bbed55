"""Items and changes come back from the file as they were, in their order, however often they are asked for."""

import errno
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.model import Access, ChunkSize, Submission
from parquetry.planning.batches import into_batches
from parquetry.planning.diff import Change
from parquetry.planning.views import joined, picked
from parquetry.tasks.documents import listed_items, spooled
from parquetry.tasks.documents.listed_items import ListedItems
from tests.records import THEN, item, row

SUBMISSION = Submission("a.md", "text/markdown", {"pages": [1, {"of": None}]}, "ada", THEN, ChunkSize(100, 10))


def change(name, **fields):
    listed = item(f"{name}.md", access=Access("organization", "acme", tags=("x",)), **fields)
    return Change("added", "extract", "new", name, "default", "docs", listed, None, row())


@pytest.fixture
def few_in_memory(monkeypatch):
    for module in (spooled, listed_items):
        monkeypatch.setattr(module, "IN_MEMORY", 2)


@pytest.fixture
def in_file(few_in_memory):
    changes = [change(f"{number:02}", size=number % 3, submission=SUBMISSION) for number in range(40)]
    return changes, spooled.spooled(iter(changes), "plan")


def test_few_records_stay_in_memory():
    assert spooled.spooled(iter([change("a")]), "plan") == (change("a"),)


def test_records_come_back_in_their_order_and_by_place(in_file, monkeypatch):
    changes, kept = in_file
    monkeypatch.setattr(spooled, "_BLOCK_BYTES", 1500)
    assert isinstance(kept, spooled.SpooledRecords)
    assert list(kept) == list(kept) == changes
    assert [kept[place] for place in (0, 7, -1)] == [changes[place] for place in (0, 7, -1)]
    assert (len(kept), kept[5:9], kept[::-13]) == (40, tuple(changes[5:9]), tuple(changes[::-13]))
    with pytest.raises(IndexError):
        kept[40]


def test_batches_of_changes_in_a_file_are_those_of_changes_in_memory(in_file):
    changes, kept = in_file
    more = (change("zz", size=5),)
    found, expected = (
        into_batches(each, lambda _: "model@4", 7, 5) for each in (joined([kept, (), more]), (*changes, *more))
    )
    assert len(found) > 5
    assert [tuple(batch.changes) for batch in found] == [batch.changes for batch in expected]


def test_views_of_records_in_memory_are_tuples():
    assert joined([(1, 2), (), (3,)]) == (1, 2, 3)
    assert joined([]) == ()
    assert picked((1, 2, 3), [2, 0]) == (3, 1)


def test_file_that_is_closed_says_so(in_file):
    _, kept = in_file
    kept._file.close()
    with pytest.raises(ValueError, match="closed"):
        kept[0]


def test_full_disk_is_named_by_its_folder(few_in_memory, monkeypatch):
    full = Path("/dev/full").open("r+b")  # noqa: SIM115 - closed by the spool
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with pytest.raises(OSError) as raised:
        spooled.spooled((change(f"{number}") for number in range(5)), "plan")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, tempfile.gettempdir())


attempts = st.lists(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcd"), st.sampled_from(["one", "two"])), max_size=8),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(attempts, st.sampled_from([1, 1000]))
def test_each_path_is_listed_once_as_in_a_dictionary(listing, in_memory):
    """The last item of a path counts, at the place of the first; an attempt takes back only what it added itself."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(listed_items, "IN_MEMORY", in_memory)
        found, seen = ListedItems(), {}
        for attempt in listing:
            latest = {}
            found.begin()
            for is_added, path, content in attempt:
                if is_added:
                    latest[path] = item(path, content)
                    found.add(latest[path])
                else:
                    latest.pop(path, None)
                    found.drop(path)
            seen.update(latest)
        assert list(found.latest()) == list(latest.values())
        assert list(found.all()) == list(seen.values())
