"""A refresh asks the index instead of shards, gets the same answers, and reads shards where the index cannot tell."""

import logging
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from parquetry import ids
from parquetry.errors import DamagedCorpus
from parquetry.storage.index import folder
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.known import IndexedRows, KnownTables
from parquetry.storage.lake import damage, stored
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.stored import Stored
from tests.damage import flip_vector
from tests.records import content_hash
from tests.storage.shelf import EMBEDDER, Shelf


@pytest.fixture
def shelf(tmp_path):
    """Create an indexed corpus in which a document changed, one was removed and one is in another namespace."""
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": ["old", "shared"], "b.md": ["one"], "c.md": ["gone"]})
    shelf.publish({"a.md": ["new", "shared"]})
    shelf.remove("c.md")
    shelf.publish({"a.md": ["other"]}, namespace="hr")
    index(shelf)
    return shelf


def index(shelf):
    IndexFolder(shelf.lake.layout, shelf.settings).refresh(shelf.lake.snapshot())


def known(shelf):
    return KnownTables(shelf.lake.layout, shelf.settings)


def newest_file(shelf):
    return IndexFolder(shelf.lake.layout, shelf.settings).newest().path


def change_index(shelf, statement):
    with duckdb.connect(str(newest_file(shelf))) as connection:
        connection.execute(statement)


def place(row):
    return row.namespace, row.source, row.path


@pytest.mark.parametrize("namespaces", [None, ["default"], ["hr", "none"]], ids=str)
@pytest.mark.parametrize("what", ["documents", "listed", "all", "knowledge"])
def test_rows_of_the_index_are_those_of_the_tables(shelf, namespaces, what):
    snapshot = shelf.lake.snapshot()
    tables = CurrentRows(snapshot, namespaces, what)
    rows = known(shelf).rows(snapshot, namespaces, what)
    assert isinstance(rows, IndexedRows)
    assert rows.all() == tables.all()
    assert sorted(rows.outlines()) == sorted(tables.outlines())
    assert sorted(rows.outlines({"a.md"})) == sorted(tables.outlines({"a.md"}))
    some = [each.document_id for each in tables.all()][:2]
    assert rows.named(some) == tables.named(some) == sorted(rows.each_named(iter(some)), key=place)
    contents = [content_hash("one"), content_hash("new\nshared"), content_hash("gone")]
    assert rows.holding(contents) == tables.holding(contents)
    assert rows.sources() == tables.sources()
    assert rows.amounts([".md"], ["hr"]).sizes == tables.amounts([".md"], ["hr"]).sizes


def test_shards_of_documents_are_not_read_again(shelf, monkeypatch):
    read = []
    monkeypatch.setattr(damage, "sha256_of", lambda file: read.append(file))
    rows = known(shelf).rows(shelf.lake.snapshot())
    assert len(rows.all()) == 3
    assert (len(rows.sources()), read) == (2, [])


@pytest.mark.parametrize("state", ["none", "older", "of another corpus", "of another format"])
def test_tables_are_read_without_an_index_of_the_version(shelf, tmp_path, state):
    if state == "none":
        IndexFolder(shelf.lake.layout, shelf.settings).clear()
    elif state == "older":
        shelf.publish({"d.md": ["four"]})
    elif state == "of another corpus":
        other = Shelf(tmp_path / "other")
        for number in range(shelf.lake.snapshot().version):
            other.publish({f"{number}.md": ["other"]})
        index(other)
        newest_file(shelf).write_bytes(newest_file(other).read_bytes())
    else:
        change_index(shelf, "UPDATE parts.meta SET value = '1' WHERE key = 'format'")
    snapshot = shelf.lake.snapshot()
    rows = known(shelf).rows(snapshot)
    assert not isinstance(rows, IndexedRows)
    assert {each.path for each in rows.all()} == {each.path for each in shelf.rows()}


@pytest.mark.parametrize("change", ["flipped", "gone"])
def test_shard_that_changed_since_it_was_indexed_is_damage(shelf, change):
    shard = sorted((shelf.root / "documents").glob("*.parquet"))[1]
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 4
    shard.unlink()
    if change == "flipped":
        shard.write_bytes(content)
    with pytest.raises(DamagedCorpus, match=shard.name):
        known(shelf).rows(shelf.lake.snapshot()).all()


def test_shard_that_was_copied_back_is_compared_once_and_then_remembered(shelf, monkeypatch):
    shard = sorted((shelf.root / "documents").glob("*.parquet"))[1]
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content)
    read, real = [], damage.sha256_of
    monkeypatch.setattr(damage, "sha256_of", lambda file: read.append(Path(file).name) or real(file))
    assert len(known(shelf).rows(shelf.lake.snapshot()).all()) == 3
    assert read == [shard.name]
    shelf.publish({"d.md": ["four"]})
    index(shelf)
    del read[:]
    assert len(known(shelf).rows(shelf.lake.snapshot()).all()) == 4
    assert read == []


def test_tables_are_read_if_the_index_cannot_be(shelf, caplog):
    change_index(shelf, "ALTER TABLE parts.documents DROP COLUMN size")
    tables, snapshot = known(shelf), shelf.lake.snapshot()
    with caplog.at_level(logging.WARNING):
        outlines = tables.read(lambda: list(tables.rows(snapshot).outlines()))
    assert {each.path for each in outlines} == {each.path for each in shelf.rows()}
    assert "the tables are read instead" in caplog.text
    assert not isinstance(tables.rows(snapshot), IndexedRows)


# --- texts


def told(shelf, *texts):
    """Return the number of known shards, and for each text the runs of the shards that hold it."""
    with duckdb.connect() as connection:
        found = known(shelf).shards_of(connection, [ids.text_hash(text) for text in texts])
    runs = {key: [name.partition("-0")[0] for name in names] for key, names in found.by_text.items()}
    return len(found.known), [runs.get(ids.text_hash(text)) for text in texts]


def test_index_tells_the_shards_of_a_text_superseded_ones_too(shelf):
    assert told(shelf, "shared", "old", "gone", "unknown") == (3, [["run-2", "run-1"], ["run-1"], ["run-1"], None])
    shelf.write({"e.md": ["registered and never published"]})
    shelf.publish({"d.md": ["shared"]})
    assert told(shelf, "shared")[0] == 3
    index(shelf)
    assert told(shelf, "shared", "registered and never published") == (5, [["run-5", "run-2", "run-1"], ["run-4"]])


@pytest.mark.parametrize("state", ["none", "of an earlier program", "not a database"])
def test_all_shards_are_read_if_no_index_tells(shelf, state):
    if state == "none":
        IndexFolder(shelf.lake.layout, shelf.settings).clear()
    elif state == "not a database":
        newest_file(shelf).write_bytes(b"no database")
    else:
        change_index(shelf, "DROP TABLE parts.text_keys")
    assert told(shelf, "shared") == (0, [None])
    assert set(Stored(shelf.lake.snapshot(), directory=known(shelf)).vectors(hashes("old"), EMBEDDER)) == hashes("old")


def test_index_of_an_earlier_program_learns_the_texts_at_the_next_update(shelf):
    for statement in ("DROP TABLE parts.text_keys", "DROP TABLE parts.text_shards"):
        change_index(shelf, statement)
    shelf.publish({"d.md": ["four"]})
    index(shelf)
    shelf.publish({"e.md": ["five"]})
    index(shelf)
    assert told(shelf, "old", "five") == (5, [["run-1"], ["run-5"]])


def test_index_of_an_earlier_program_gets_the_columns_that_it_lacks(shelf, monkeypatch):
    change_index(shelf, "ALTER TABLE parts.runs DROP COLUMN slowest")
    monkeypatch.setattr(folder, "built", lambda *_: pytest.fail("built anew"))
    shelf.publish({"d.md": ["four"]})
    index(shelf)
    with duckdb.connect(str(newest_file(shelf)), read_only=True) as connection:
        columns = connection.execute("SELECT column_name FROM (DESCRIBE parts.runs)").fetchall()
    assert ("slowest",) in columns


def test_shards_that_gave_way_are_forgotten(shelf):
    snapshot = shelf.lake.snapshot()
    shelf.publish({"d.md": ["four"]})
    gone = [file for file in snapshot.files["chunks"] if "run-2" in file]
    files = {**shelf.lake.snapshot().files, "chunks": tuple(set(shelf.lake.snapshot().files["chunks"]) - set(gone))}
    IndexFolder(shelf.lake.layout, shelf.settings).refresh(replace(shelf.lake.snapshot(), files=files))
    assert told(shelf, "shared", "new") == (3, [["run-1"], None])


def hashes(*texts):
    return {ids.text_hash(text) for text in texts}


@pytest.fixture
def read(monkeypatch):
    """Return the shards that are queried, once more for each query; even few are looked up."""
    queried, real = [], stored.sql_list
    monkeypatch.setattr(stored, "sql_list", lambda files: queried.extend(files) or real(files))
    monkeypatch.setattr(stored, "_FEW_SHARDS", 0)
    return queried


def runs(files):
    return [Path(file).name.partition("-0")[0] for file in files]


def test_vectors_are_read_from_the_newest_shard_that_holds_the_text(shelf, read):
    vectors = Stored(shelf.lake.snapshot(), directory=known(shelf))
    assert set(vectors.vectors(hashes("shared", "unknown"), EMBEDDER)) == hashes("shared")
    assert runs(read) == ["run-2"]
    del read[:]
    assert vectors.vectors(hashes("unknown"), EMBEDDER) == {}
    assert read == []


def test_shards_that_the_index_does_not_know_are_read(shelf, read):
    _, run = shelf.write({"d.md": ["four"]}, register=False)
    orphan = str(next((shelf.root / "chunks").glob(f"{run}-*")))
    shelf.publish({"e.md": ["five"]})
    vectors = Stored(shelf.lake.snapshot(), [orphan], directory=known(shelf))
    found = vectors.vectors(hashes("old", "four", "five", "unknown"), EMBEDDER)
    assert set(found) == hashes("old", "four", "five")
    assert sorted(runs(read)) == ["run-1", "run-4", "run-5"]


def test_older_shard_gives_the_vector_if_the_newest_has_none_to_give(shelf, read, caplog):
    flip_vector(next((shelf.root / "chunks").glob("run-2-*")))
    vectors = Stored(shelf.lake.snapshot(), directory=known(shelf))
    assert set(vectors.vectors(hashes("shared"), EMBEDDER)) == hashes("shared")
    assert runs(read) == ["run-2", "run-1"]
    assert "is damaged and is not used" in caplog.text
    shelf.publish({"f.md": ["shared"]}, embedder="other@4")
    index(shelf)
    vectors = Stored(shelf.lake.snapshot(), directory=known(shelf))
    assert set(vectors.vectors(hashes("shared"), EMBEDDER)) == hashes("shared")
