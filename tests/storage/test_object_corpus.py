"""A corpus on a real S3 server behaves like one in a folder."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from parquetry.errors import DamagedCorpus, PublishConflict, SettingsError, StorageError
from parquetry.ids import text_hash
from parquetry.planning.rows import RunStamp
from parquetry.storage.connect import connect
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import TABLES, shard_name
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.lake import SEARCHED, Lake
from parquetry.storage.lake.rewrite import remove_documents, restore_version
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.lake.stored import Stored
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.replaced_files import missing_file
from parquetry.storage.search.export import export_corpus
from parquetry.storage.search.filters import Filters
from tests.records import row
from tests.storage.shelf import Shelf

STAMP = RunStamp("run-x", datetime(2026, 5, 1, tzinfo=UTC))


@pytest.fixture
def reached(s3_server, monkeypatch, tmp_path):
    """Point the environment to the server; caches are the test's own."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return s3_server


@pytest.fixture
def shelf(reached):
    """Create an empty corpus on the server."""
    return Shelf(f"s3://{reached.bucket()}/kb/größe")


def keys(server, shelf):
    """Return the keys on the server, below the corpus."""
    bucket, _, prefix = shelf.root.removeprefix("s3://").partition("/")
    pages = server.client().get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [each["Key"].removeprefix(prefix + "/") for page in pages for each in page.get("Contents", ())]


@pytest.mark.parametrize("needed", [["documents"], SEARCHED, TABLES])
def test_reader_of_some_tables_finds_the_files_of_all(shelf, needed):
    shelf.publish({"a.md": ["one"]})
    assert dict(shelf.lake.snapshot(needed=needed).files) == dict(shelf.lake.snapshot().files)


def test_place_without_a_corpus_says_what_to_do(reached):
    root = f"s3://{reached.bucket()}/kb"
    assert not Lake.exists(root)
    with pytest.raises(SettingsError, match=r"no corpus at s3://.*/kb; `parquetry refresh` makes one"):
        Lake(root)


def test_file_that_is_gone_is_damage_with_its_name(reached, shelf):
    """The same holds if another process deleted it, so that its size is still cached."""
    shelf.publish({"a.md": ["one oak", "two"]})
    shelf.publish({"b.md": ["other elm"]})
    snapshot = shelf.lake.snapshot()
    first, second = snapshot.files["chunks"]
    filesystem_at(first).delete(first)
    bucket, _, key = second.removeprefix("s3://").partition("/")
    with connect_snapshot(replace(snapshot, files={**snapshot.files, "chunks": (second,)})) as connection:
        connection.execute("SELECT count(*) FROM all_chunks")
        reached.client().delete_object(Bucket=bucket, Key=key)
        with pytest.raises(duckdb.Error) as raised:
            connection.execute("SELECT text FROM all_chunks").fetchall()
        assert missing_file(raised.value) == second
    with pytest.raises(DamagedCorpus, match=f"{first} is missing"):
        connect_snapshot(snapshot)


def test_published_documents_are_read_searched_and_looked_back_at(shelf, tmp_path):
    shelf.publish({"a.md": ["one oak", "two"], "b.md": ["other elm"]})
    shelf.publish({"a.md": ["three oak"]})
    assert shelf.texts() == {"a.md": ["three oak"], "b.md": ["other elm"]}
    assert shelf.texts(1) == {"a.md": ["one oak", "two"], "b.md": ["other elm"]}
    assert [text for text, _ in shelf.search("oak")] == ["three oak"]
    assert [text for text, _ in shelf.search("oak", version=1)] == ["one oak"]
    found = [(entry.version, entry.operation, entry.documents) for entry in shelf.lake.history()]
    assert found == [(2, "publish", 1), (1, "publish", 2), (0, "create", 0)]
    (made,) = (tmp_path / "cache" / "parquetry").glob("*/index-2.duckdb")
    assert IndexFolder(shelf.lake.layout, shelf.settings).newest().path == made


def test_index_follows_the_corpus_and_agrees_with_it(shelf):
    for text in ("oak", "elm", "ash"):
        shelf.publish({"a.md": [text], f"{text}.md": [f"{text} and {text}"]})
        assert [found for found, _ in shelf.search(text)] == [f"{text} and {text}", text]
    checkup = examine(shelf.lake, shelf.settings)
    assert checkup.findings == ()
    assert (checkup.version, checkup.documents) == (3, 4)


def test_earlier_version_comes_back_and_documents_leave(shelf):
    shelf.publish({"a.md": ["one"], "b.md": ["two"]})
    shelf.remove("a.md")
    restore_version(shelf.lake, 1, STAMP)
    assert shelf.texts() == {"a.md": ["one"], "b.md": ["two"]}
    remove_documents(shelf.lake, ["b.md"], STAMP)
    assert shelf.texts() == {"a.md": ["one"]}
    with shelf.connect() as connection:
        assert connection.execute("SELECT kind FROM runs ORDER BY ALL").fetchall() == [("remove",), ("restore",)]


def test_connection_and_export_hold_what_a_folders_would(shelf, tmp_path):
    shelf.publish({"a.md": ["one", "two"]})
    connection = connect(shelf.root)
    assert connection.execute("SELECT text FROM chunks ORDER BY chunk_index").fetchall() == [("one",), ("two",)]
    assert connection.execute("SELECT text FROM texts").fetchall() == [("one\ntwo",)]
    assert connection.execute("SELECT count(*) FROM document_history").fetchall() == [(1,)]
    done = export_corpus(shelf.lake.snapshot(), Filters(), tmp_path / "out", "english")
    assert (done.documents, done.chunks) == (1, 2)


def test_vectors_are_found_again_even_those_of_a_crashed_run(shelf):
    shelf.publish({"a.md": ["one"]}, vectors=[[4, 3, 2, 1]])
    _, run = shelf.write({"b.md": ["paid for"]}, register=False, vectors=[[1, 2, 3, 4]])
    snapshot = shelf.lake.snapshot()
    orphans = shelf.lake.orphans(snapshot)
    assert [Path(path).name for path in orphans] == [shard_name(run, 0)]
    stored = Stored(snapshot, orphans)
    found = stored.vectors([text_hash("paid for"), text_hash("one"), text_hash("unheard")], "model@4")
    assert {key: found[key].vector.tolist() for key in found} == {
        text_hash("paid for"): [1, 2, 3, 4],
        text_hash("one"): [4, 3, 2, 1],
    }
    stored.close()
    (note,) = examine(shelf.lake).findings
    assert (note.check, note.severity, note.count) == ("orphan", "note", 2)


def test_lost_and_damaged_objects_are_named(reached, shelf):
    shelf.publish({"a.md": ["one"]})
    shelf.publish({"b.md": ["two"]})
    first, second = shelf.lake.snapshot().files["chunks"]
    files = filesystem_at(shelf.root)
    files.delete(first)
    files.write(second, lambda sink: sink.write(b"PAR1 cut"))
    found = {each.check: each.detail for each in examine(shelf.lake).findings}
    assert Path(first).name in found["missing-file"]
    assert Path(second).name in found["damaged-file"]


def test_objects_that_are_not_of_the_corpus_are_noted(reached, shelf):
    files = filesystem_at(shelf.root)
    for name in ("notes.txt", "texts/readme.md"):
        files.write(f"{shelf.root}/{name}", lambda sink: sink.write(b"mine"))
    (note,) = examine(shelf.lake).findings
    assert (note.check, note.severity) == ("unknown-file", "note")
    assert note.detail.endswith("notes.txt, texts/readme.md")


# --- concurrent writers


def test_second_publish_from_one_snapshot_conflicts_and_leaves_no_trace(reached, shelf):
    base = shelf.lake.snapshot()
    shelf.publish({"a.md": ["first"]}, base)
    rows, run = shelf.write({"b.md": ["second"]})
    before = keys(reached, shelf)
    with pytest.raises(PublishConflict, match="another run published to default meanwhile"):
        shelf.lake.publish(base, rows, run)
    assert keys(reached, shelf) == before
    assert shelf.lake.publish(shelf.lake.snapshot(), rows, run) == 2
    assert shelf.texts() == {"a.md": ["first"], "b.md": ["second"]}


@pytest.mark.parametrize("names", [["default"] * 6, [f"part-{number}" for number in range(6)]], ids=["one", "own"])
def test_of_publishes_at_the_same_moment_one_wins_each_namespace(shelf, names):
    base, start = shelf.lake.snapshot(), threading.Barrier(len(names))

    def publish(number):
        lake = Lake(shelf.root)
        start.wait()
        try:
            return lake.publish(base, [row(f"{number}.md", namespace=names[number])], f"run-{number}")
        except PublishConflict:
            return None

    with ThreadPoolExecutor(len(names)) as writers:
        published = list(writers.map(publish, range(len(names))))
    assert len([each for each in published if each is not None]) == len(set(names))
    assert len(shelf.rows()) == len(set(names))
    assert shelf.lake.snapshot().version == len(set(names))


# --- locating the server, and its errors


def test_corpus_is_whole_tables_and_one_probe(reached, shelf):
    shelf.publish({"a.md": ["one"]})
    folders = {key.split("/")[0] for key in keys(reached, shelf)}
    assert folders == {*TABLES, "conditional-writes"}


@pytest.mark.parametrize("how", ["AWS_ENDPOINT_URL_S3", "profile"])
def test_server_is_found_as_the_tools_of_aws_find_it(reached, shelf, monkeypatch, tmp_path, how):
    shelf.publish({"a.md": ["one"]})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    if how == "profile":
        config = f"[profile kb]\nregion = us-east-1\nendpoint_url = {reached.endpoint}\n"
        keys = f"[kb]\naws_access_key_id = {reached.access_key}\naws_secret_access_key = {reached.secret_key}\n"
        (tmp_path / "config").write_text(config)
        (tmp_path / "credentials").write_text(keys)
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        monkeypatch.setenv("AWS_PROFILE", "kb")
    else:
        monkeypatch.setenv(how, reached.endpoint)
    again = Shelf(shelf.root)
    again.runs = 10
    assert again.texts() == {"a.md": ["one"]}
    assert again.publish({"b.md": ["two"]}) == 2
    assert again.texts() == {"a.md": ["one"], "b.md": ["two"]}


def test_open_bucket_is_read_without_credentials_and_not_written(reached, monkeypatch):
    owner = Shelf(f"s3://{reached.bucket('open')}/kb")
    owner.publish({"a.md": ["one"]})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    lake = Lake(owner.root)
    owner.lake = lake
    assert owner.texts() == {"a.md": ["one"]}
    with pytest.raises(StorageError, match=r"cannot be written"):
        Lake(owner.root, create=True)
    (note,) = examine(lake).findings
    assert (note.check, note.severity) == ("conditional-writes", "note")


@pytest.mark.parametrize(("secret", "bucket"), [("wrong", None), (None, "no-such-bucket")])
def test_wrong_key_or_bucket_is_one_line_without_secrets(reached, monkeypatch, secret, bucket):
    if secret:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    root = f"s3://{bucket or reached.bucket()}/kb"
    with pytest.raises(StorageError) as raised:
        Lake(root, create=True)
    assert root in str(raised.value)
    assert "\n" not in str(raised.value)
    assert reached.secret_key not in str(raised.value)


def test_corpus_made_anew_at_the_same_place_is_not_answered_from_the_old_index(reached, shelf):
    shelf.publish({"a.md": ["old oak"]})
    shelf.publish({"b.md": ["old elm"]})
    assert [text for text, _ in shelf.search("oak")] == ["old oak"]
    bucket, _, prefix = shelf.root.removeprefix("s3://").partition("/")
    for key in keys(reached, shelf):
        reached.client().delete_object(Bucket=bucket, Key=f"{prefix}/{key}")
    again = Shelf(shelf.root)
    again.runs = 10
    again.publish({"a.md": ["new oak"]})
    assert [text for text, _ in again.search("oak")] == ["new oak"]
    again.publish({"b.md": ["new elm"]})
    assert [text for text, _ in again.search("elm")] == ["new elm"]


def test_description_says_what_a_folders_says(shelf):
    (entry,) = shelf.lake.history()
    assert entry.operation == "create"
    assert json.dumps(shelf.lake.layout.root) == json.dumps(shelf.root)
