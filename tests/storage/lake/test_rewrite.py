"""An earlier version is restored as a new one, and documents are removed."""

from dataclasses import replace

import pytest

from parquetry.errors import PublishConflict, SettingsError, StorageError
from parquetry.model import Access
from parquetry.planning.match import is_named
from parquetry.planning.rebase import by_key
from parquetry.planning.restore import restore
from parquetry.planning.rows import RunStamp
from parquetry.storage.lake.rewrite import remove_documents, restore_version
from parquetry.storage.lake.seals import sealed
from tests.records import NOW, row

pytestmark = pytest.mark.slow

STAMP = RunStamp("run-restore", NOW)


def bare(rows):
    """Return rows without the run and time of their publish."""
    return [replace(each, sequence=0, run_id="", indexed_at=NOW) for each in rows]


@pytest.fixture
def history(shelf):
    """Publish version 1: a, b; 2: a edited; 3: b removed; 4: c added; 5: a with other permissions."""
    shelf.publish({"a.md": ["one"], "b.md": ["two"]})
    shelf.publish({"a.md": ["one, edited"]})
    shelf.remove("b.md")
    shelf.publish({"c.md": ["three"]}, namespace="hr")
    (edited,) = [each for each in shelf.rows() if each.path == "a.md"]
    shelf.lake.publish(shelf.lake.snapshot(), [replace(edited, access=Access(tags=("x",)))], "run-5")
    return shelf


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_restored_version_equals_the_one_it_was(history, version):
    then, texts = bare(history.rows(version)), history.texts(version)
    done = restore_version(history.lake, version, STAMP)
    assert bare(history.rows()) == then
    assert history.texts() == texts
    assert (done.version_before, done.version) == (5, 5 if version == 5 else 6)
    assert bare(history.rows(5)) != then or version == 5


def test_restore_of_the_present_publishes_nothing(history):
    assert restore_version(history.lake, 5, STAMP).rows == ()
    assert history.lake.snapshot().version == 5


def test_restore_can_be_taken_back(history):
    now = bare(history.rows())
    restore_version(history.lake, 1, STAMP)
    restore_version(history.lake, 5, STAMP)
    assert bare(history.rows()) == now


def test_restore_of_one_namespace_leaves_the_others(history):
    restore_version(history.lake, 1, STAMP, "default")
    assert history.texts() == {"a.md": ["one"], "b.md": ["two"], "c.md": ["three"]}


def test_restore_of_a_version_that_there_is_not_is_refused(history):
    with pytest.raises(SettingsError, match="has no version 6; it has 0 to 5"):
        restore_version(history.lake, 6, STAMP)


def test_restore_whose_chunks_are_gone_publishes_nothing(history):
    for file in (history.root / "chunks").glob("run-1-*.parquet"):
        file.unlink()
    (history.root / "chunks" / "_delta_log").joinpath("00000000000000000001.json").write_bytes(
        sealed(b'{"commitInfo":{"timestamp":0,"operation":"WRITE"}}\n')
    )
    with pytest.raises(
        StorageError, match=r"version 1 cannot be restored: the chunks of 2 of its documents .*a\.md, b\.md"
    ):
        restore_version(history.lake, 1, STAMP)
    assert history.lake.snapshot().version == 5


def test_rewrite_is_recorded_as_a_run(history):
    restore_version(history.lake, 1, STAMP)
    with history.connect() as connection:
        assert connection.execute(
            "SELECT run_id, kind, status, namespaces, version_before, version_after, changed, removed FROM runs"
        ).fetchall() == [("run-restore", "restore", "completed", ["default", "hr"], 5, 6, 2, 1)]


def test_removed_documents_leave_and_earlier_versions_keep_them(history):
    done = remove_documents(history.lake, ["a.md"], STAMP)
    assert [each.path for each in done.rows] == ["a.md"]
    assert history.texts() == {"c.md": ["three"]}
    assert history.texts(5) == {"a.md": ["one, edited"], "c.md": ["three"]}


def test_unknown_name_removes_nothing(history):
    with pytest.raises(SettingsError, match="no document 'nothing' in this corpus"):
        remove_documents(history.lake, ["a.md", "nothing"], STAMP)
    with pytest.raises(SettingsError, match=r"no document 'c\.md'"):
        remove_documents(history.lake, ["c.md"], STAMP, "default")
    assert history.lake.snapshot().version == 5


class Busy:
    """A lake in which another writer publishes first, a given number of times."""

    def __init__(self, shelf, times):
        self.shelf, self.times = shelf, times

    def snapshot(self, version=None):
        return self.shelf.lake.snapshot(version)

    def version_of(self, version):
        return self.shelf.lake.version_of(version)

    def publish(self, base, rows, run_id, before=None):
        if self.times:
            self.times -= 1
            self.shelf.publish({f"new{self.times}.md": ["new"]})
        return self.shelf.lake.publish(base, rows, run_id, before)

    def record(self, run, failures):
        self.shelf.lake.record(run, failures)


def test_removal_gives_way_to_others_and_sees_what_they_published(history):
    done = remove_documents(Busy(history, 2), ["*.md"], STAMP, "default")
    assert sorted(each.path for each in done.rows) == ["a.md", "new0.md", "new1.md"]
    assert history.texts() == {"c.md": ["three"]}


def test_rewrite_gives_up_when_others_never_stop(history):
    with pytest.raises(PublishConflict, match="nothing was changed, try again"):
        restore_version(Busy(history, 99), 1, STAMP)


def test_restore_writes_only_what_differs():
    same, edited, gone, new = row("same.md"), row("edited.md"), row("gone.md"), row("new.md")
    target = by_key([same, edited, gone])
    current = by_key([replace(same, sequence=7, run_id="later"), replace(edited, title="other"), new])
    found = {each.path: each.removed for each in restore(target, current, STAMP)}
    assert found == {"edited.md": False, "gone.md": False, "new.md": True}


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("sub/a[1].md", True),
        ("a[1].md", True),
        ("file:///docs/sub/a[1].md", True),
        ("sub/*", True),
        ("*", True),
        ("*.md", True),
        ("a*", True),
        ("A*", False),
        ("sub", False),
        ("", False),
    ],
)
def test_name_means_a_document_by_id_place_or_glob(name, means):
    named = row("sub/a[1].md")
    assert is_named(named, name) == means
    assert is_named(named, named.document_id)
