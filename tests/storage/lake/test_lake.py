"""A publish is visible whole or not at all, and every earlier version stays readable."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from parquetry.errors import PublishConflict, SettingsError, StorageError
from parquetry.ids import text_hash
from parquetry.planning.rows import failure_of
from parquetry.storage.files.layout import TABLES, layout_of, shard_name
from parquetry.storage.lake import tables
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.stored import Stored
from tests.records import failed, row
from tests.storage.shelf import Shelf


def test_place_without_a_corpus_says_what_to_do(tmp_path):
    assert not Lake.exists(str(tmp_path))
    with pytest.raises(SettingsError, match=r"no corpus at .*; `parquetry refresh` makes one, --corpus names another"):
        Lake(str(tmp_path))


def test_new_corpus_is_empty_and_opens_again(tmp_path):
    Lake(str(tmp_path / "kb"), create=True)
    lake = Lake(str(tmp_path / "kb"))
    snapshot = lake.snapshot()
    assert (snapshot.version, snapshot.files) == (0, dict.fromkeys(TABLES, ()))
    assert current_rows(snapshot) == []
    assert [(entry.version, entry.operation) for entry in lake.history()] == [(0, "create")]
    Lake(str(tmp_path / "kb"), create=True)
    assert lake.snapshot().version == 0


def test_half_made_corpus_is_completed(tmp_path):
    """A crash between the tables leaves no `documents`, which is made last."""
    lake = Lake(str(tmp_path), create=True)
    for file in Path(lake.layout.table("documents")).rglob("*.json"):
        file.unlink()
    assert not Lake.exists(str(tmp_path))
    assert Lake(str(tmp_path), create=True).snapshot().version == 0


@pytest.mark.parametrize("root", ["kb", "k b/größe 100%", "quo'te\"[x]*?{y}"])
def test_corpus_lives_in_a_folder_of_any_name(tmp_path, root):
    shelf = Shelf(tmp_path / root)
    shelf.publish({"a.md": ["one"]})
    assert shelf.texts() == {"a.md": ["one"]}
    assert Lake((tmp_path / root).as_uri()).layout == shelf.lake.layout


def test_corpus_of_a_newer_schema_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "SCHEMA_VERSION", tables.SCHEMA_VERSION + 1)
    Lake(str(tmp_path), create=True)
    monkeypatch.undo()
    with pytest.raises(
        SettingsError, match=r"has schema 2, newer than this program understands \(1\); install a newer"
    ):
        Lake(str(tmp_path))


@pytest.mark.parametrize("description", [None, "somebody's table", "{}", '{"parquetry_schema": "x"}', "[]", "3"])
def test_table_of_somebody_else_is_refused(tmp_path, description):
    table = layout_of(str(tmp_path)).table("documents")
    write_deltalake(table, pa.table({"x": [1]}), description=description)
    with pytest.raises(SettingsError, match="that is not a Parquetry corpus; choose another folder with --corpus"):
        Lake(str(tmp_path), create=True)


@pytest.mark.parametrize(
    "root", ["https://example.org/kb", "http-dir://kb", "s3://", "gs://b/a b", "s3://b/../kb", "s3://b/k*"]
)
def test_place_that_cannot_hold_a_corpus_is_refused(root):
    with pytest.raises(SettingsError, match=r"is not supported|write \w+://bucket/prefix"):
        Lake(root)


@pytest.mark.parametrize("name", ["kb", "kb/below"])
@pytest.mark.parametrize("create", [True, False])
def test_file_in_the_way_of_a_corpus_is_a_wrong_setting(tmp_path, name, create):
    (tmp_path / "kb").write_text("")
    with pytest.raises(SettingsError, match="kb is a file, and a corpus is a folder"):
        Lake(str(tmp_path / name), create=create)


# --- publish


def test_published_rows_read_back_as_they_were(shelf):
    written = [
        row("a.md", metadata={"pages": 3, "draft": True, "who": "Ada 🙂"}, title=None),
        failed("b.md", namespace="hr", error='extract/damaged: it\'s "cut"'),
    ]
    assert shelf.lake.publish(shelf.lake.snapshot(), written, "run-1") == 1
    assert shelf.rows() == [replace(each, sequence=1) for each in written]
    assert current_rows(shelf.lake.snapshot(), ["hr"]) == [replace(written[1], sequence=1)]
    assert current_rows(shelf.lake.snapshot(), []) == []


def test_nothing_to_publish_writes_nothing(shelf):
    before = sorted(shelf.root.rglob("*"))
    assert shelf.lake.publish(shelf.lake.snapshot(), [], "run-1") == 0
    assert sorted(shelf.root.rglob("*")) == before


def test_shards_are_invisible_until_a_row_names_their_revision(shelf):
    rows, run = shelf.write({"a.md": ["one", "two"]})
    assert (shelf.rows(), shelf.texts()) == ([], {})
    shelf.lake.publish(shelf.lake.snapshot(), rows, run)
    assert shelf.texts() == {"a.md": ["one", "two"]}


def test_newer_revision_replaces_the_older_one_and_removal_hides_it(shelf):
    shelf.publish({"a.md": ["old one", "old two"], "b.md": ["other"]})
    shelf.publish({"a.md": ["new"]})
    assert shelf.texts() == {"a.md": ["new"], "b.md": ["other"]}
    shelf.remove("a.md")
    assert shelf.texts() == {"b.md": ["other"]}


def test_every_version_stays_as_it_was(shelf):
    versions = [shelf.publish({"a.md": [text]}) for text in ("one", "two", "three")]
    versions.append(shelf.remove("a.md"))
    assert versions == [1, 2, 3, 4]
    assert [shelf.texts(version) for version in (0, 1, 2, 3, 4)] == [
        {},
        {"a.md": ["one"]},
        {"a.md": ["two"]},
        {"a.md": ["three"]},
        {},
    ]


def test_reader_of_an_older_snapshot_is_not_disturbed(shelf):
    shelf.publish({"a.md": ["one"]})
    with shelf.connect() as reader:
        for text in ("two", "three"):
            shelf.publish({"a.md": [text]})
        assert reader.execute("SELECT text FROM chunks").fetchall() == [("one",)]
    assert shelf.texts() == {"a.md": ["three"]}


@pytest.mark.parametrize("version", [-1, 2, 99])
def test_version_that_there_is_not_names_those_that_there_are(shelf, version):
    shelf.publish({"a.md": ["one"]})
    with pytest.raises(SettingsError, match=rf"has no version {version}; it has 0 to 1"):
        shelf.lake.snapshot(version)


def test_history_tells_who_published_what_newest_first(shelf):
    shelf.publish({"a.md": ["one"], "b.md": ["two"]})
    shelf.publish({"a.md": ["three"]})
    found = [(entry.version, entry.operation, entry.run_id, entry.documents) for entry in shelf.lake.history()]
    assert found == [(2, "publish", "run-2", 1), (1, "publish", "run-1", 2), (0, "create", None, 0)]
    assert len(shelf.lake.history(1)) == 1


# --- two writers


def test_second_publish_from_one_snapshot_conflicts_and_leaves_no_trace(shelf):
    base = shelf.lake.snapshot()
    shelf.publish({"a.md": ["first"]}, base)
    rows, run = shelf.write({"b.md": ["second"]})
    files = sorted((shelf.root / "documents").glob("*.parquet"))
    with pytest.raises(PublishConflict, match="another run published to default meanwhile"):
        shelf.lake.publish(base, rows, run)
    assert shelf.texts() == {"a.md": ["first"]}
    assert sorted((shelf.root / "documents").glob("*.parquet")) == files
    assert shelf.lake.publish(shelf.lake.snapshot(), rows, run) == 2
    assert shelf.texts() == {"a.md": ["first"], "b.md": ["second"]}


def test_publish_to_another_namespace_does_not_conflict(shelf):
    base = shelf.lake.snapshot()
    shelf.publish({"a.md": ["first"]}, base)
    assert shelf.publish({"b.md": ["second"]}, base, namespace="hr") == 2
    assert shelf.texts() == {"a.md": ["first"], "b.md": ["second"]}


def test_publish_to_two_namespaces_conflicts_with_either(shelf):
    base = shelf.lake.snapshot()
    rows = [row("a.md"), row("b.md", namespace="hr")]
    shelf.publish({"c.md": ["x"]}, base, namespace="hr")
    with pytest.raises(PublishConflict, match="default, hr"):
        shelf.lake.publish(base, rows, "run-9")
    assert [each.path for each in shelf.rows()] == ["c.md"]


def test_sequences_count_the_publishes_of_a_namespace(shelf):
    shelf.publish({"a.md": ["1"]})
    shelf.publish({"b.md": ["2"]}, namespace="hr")
    shelf.publish({"c.md": ["3"]})
    assert {each.path: each.sequence for each in shelf.rows()} == {"a.md": 1, "c.md": 2, "b.md": 1}


def test_registering_shards_disturbs_no_publish(shelf):
    base = shelf.lake.snapshot()
    shelf.write({"x.md": ["never published"]})
    assert shelf.publish({"a.md": ["one"]}, base) == 1


# --- leftovers of crashed runs


def test_orphan_of_a_crashed_run_is_found_by_its_vectors_and_never_seen(shelf):
    shelf.publish({"a.md": ["one"]})
    _, run = shelf.write({"b.md": ["paid for"]}, register=False, vectors=[[1, 2, 3, 4]])
    snapshot = shelf.lake.snapshot()
    orphans = shelf.lake.orphans(snapshot)
    assert [Path(path).name for path in orphans] == [shard_name(run, 0)]
    assert shelf.texts() == {"a.md": ["one"]}
    stored = Stored(snapshot, orphans)
    key = text_hash("paid for")
    assert stored.vectors([key], "model@4")[key].vector.tolist() == [1, 2, 3, 4]
    assert stored.vectors([key], "other@4") == {}
    stored.close()


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_orphan_that_was_cut_short_is_left_out(shelf, kept):
    _, run = shelf.write({"b.md": ["cut"]}, register=False)
    file = shelf.root / "chunks" / shard_name(run, 0)
    file.write_bytes(file.read_bytes()[:kept])
    assert shelf.lake.orphans(shelf.lake.snapshot()) == ()


def test_unreadable_log_is_a_storage_error_that_names_the_corpus(shelf):
    shelf.publish({"a.md": ["one"]})
    (shelf.root / "documents" / "_delta_log" / "00000000000000000001.json").write_text("{not json\n")
    with pytest.raises(
        StorageError, match=rf"the corpus is damaged: {shelf.root}/documents/_delta_log/0+1.json is"
    ) as raised:
        Lake(str(shelf.root)).snapshot()
    assert "\n" not in str(raised.value)


def test_runs_and_failures_are_recorded(shelf):
    broken = failed("b.md", error="extract/damaged: is cut")
    shelf.lake.record({"run_id": "r1", "kind": "refresh", "scanned": 3, "namespaces": ["a"]}, [failure_of(broken)])
    with shelf.connect() as connection:
        assert connection.execute("SELECT run_id, scanned, namespaces, failed FROM runs").fetchall() == [
            ("r1", 3, ["a"], None)
        ]
        assert connection.execute("SELECT uri, reason FROM failures").fetchall() == [("file:///docs/b.md", "damaged")]


def test_schema_version_is_kept_where_any_reader_finds_it(shelf):
    description = DeltaTable(str(shelf.root / "documents")).metadata().description
    assert json.loads(description) == {"parquetry_schema": 1}


def test_publish_after_which_nothing_can_be_read_has_published(shelf, monkeypatch):
    """A caller that gets an error would publish again."""
    shelf.publish({"a.md": ["one"]})
    rows, run = shelf.write({"b.md": ["two"]})
    base = shelf.lake.snapshot()

    class Unreadable(DeltaTable):
        committed = False

        def __init__(self, *place, **options):
            if Unreadable.committed:
                raise DeltaError("the store is down")
            super().__init__(*place, **options)

        def create_write_transaction(self, *what, **options):
            super().create_write_transaction(*what, **options)
            Unreadable.committed = True

    with monkeypatch.context() as patched:
        patched.setattr("parquetry.storage.lake.commits._PAUSE", 0.0)
        patched.setattr("parquetry.storage.lake.commits.DeltaTable", Unreadable)
        assert shelf.lake.publish(base, rows, run) == 2
    assert shelf.texts() == {"a.md": ["one"], "b.md": ["two"]}
