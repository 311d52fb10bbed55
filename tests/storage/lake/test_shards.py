"""A shard is written whole or not at all."""

import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from parquetry import ids
from parquetry.model import Heading, Part, Quality
from parquetry.storage.files.layout import layout_of, shard_name
from parquetry.storage.lake import shards
from parquetry.storage.lake.shards import StoredText, parse_structure, structure_json, write_chunks
from parquetry.storage.lake.stored import Stored
from tests.records import row


def read(shelf, table):
    (file,) = (shelf.root / table).glob("*.parquet")
    return pq.read_table(file).to_pylist()


def test_chunks_are_written_column_by_column(shelf):
    shelf.write({"a.md": ["one", "größe 🙂"]}, vectors=[[1, 0, 0, 0], [0, 0.5, 0.5, 0]])
    first, second = read(shelf, "chunks")
    assert (first["chunk_index"], first["start"], first["end"], first["text"]) == (0, 0, 3, "one")
    assert (second["start"], second["end"], second["text"]) == (4, 11, "größe 🙂")
    assert (first["headings"], first["kind"], first["page"], first["tokens"]) == (["Heading"], "document", None, 3)
    assert (first["text_hash"], first["embedder"]) == (ids.text_hash("one"), "model@4")
    assert [first["vector"], second["vector"]] == [[1, 0, 0, 0], [0, 0.5, 0.5, 0]]


@pytest.mark.parametrize("gaps", [[0], [2], [0, 2], [0, 1, 2]])
def test_chunk_without_a_vector_is_null_and_disturbs_no_other(shelf, gaps):
    vectors = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    vectors[gaps] = 0
    shelf.publish({"a.md": ["one", "two", "three"]}, vectors=vectors)
    found = [chunk["vector"] for chunk in read(shelf, "chunks")]
    assert found == [None if index in gaps else vectors[index].tolist() for index in range(3)]
    stored = Stored(shelf.lake.snapshot())
    kept = stored.vectors(ids.text_hashes(["one", "two", "three"]), "model@4")
    stored.close()
    assert set(kept) == {ids.text_hash(name) for index, name in enumerate(["one", "two", "three"]) if index not in gaps}
    with shelf.connect() as connection:
        assert connection.execute("SELECT count(*) FROM chunks WHERE vector IS NULL").fetchall() == [(len(gaps),)]


def test_small_values_and_signs_survive(shelf):
    vector = np.array([[-0.0, 1e-38, -3.4e38, math.pi]], np.float32)
    shelf.write({"a.md": ["x"]}, vectors=vector)
    assert np.array_equal(np.array(read(shelf, "chunks")[0]["vector"], np.float32), vector[0])


def test_empty_batch_writes_an_empty_shard(shelf):
    shard = write_chunks(shelf.lake.layout, shard_name("r", 0), [], "model@4", np.zeros((0, 4), np.float32))
    assert shard.rows == 0
    shelf.lake.register([shard], "r")
    assert shelf.lake.snapshot().files["chunks"] == ()


def test_stored_text_comes_back_with_its_parts_and_headings(shelf):
    text = StoredText(
        7,
        "text 🙂",
        (Part(0, 3, "sheet", 1, "Büdget", "table"), Part(3, 6, "page", 2, None, "code", "python")),
        (Heading(0, 1, 'a "title"'),),
    )
    assert parse_structure(structure_json(text)) == (text.parts, text.headings, None, None)
    facts = Quality(3, (2,), (2,), 0, 3.5, ((1, 0.9), (3, 0.8)), 0.85, 4, None, 0)
    assert parse_structure(structure_json(replace(text, quality=facts)))[3] == facts
    later = structure_json(replace(text, quality=Quality(pages=2))).replace('"pages":2', '"pages":2,"later":[1]')
    assert parse_structure(later)[3] == Quality(pages=2)
    rows, _ = shelf.write({"a.md": ["one", "two"]})
    stored = Stored(shelf.lake.snapshot())
    found = stored.texts([rows[0].revision, 12345])
    stored.close()
    assert list(found) == [rows[0].revision]
    assert found[rows[0].revision].text == "one\ntwo"
    assert found[rows[0].revision].parts == (Part(0, 7, "document", 1, None, "text"),)


def test_failed_write_leaves_nothing(shelf):
    shard = shelf.root / "chunks" / shard_name("run-1", 0)
    shard.mkdir()
    with pytest.raises(OSError, match="directory"):
        shelf.write({"a.md": ["one"]})
    assert [path.name for path in (shelf.root / "chunks").iterdir() if path != shard] == ["_delta_log"]


def test_nothing_is_looked_up_where_nothing_is_stored():
    stored = Stored()
    assert stored.vectors([ids.text_hash("x")], "model@4") == {}
    assert stored.vectors([], "model@4") == {}
    assert stored.texts([1]) == {}
    stored.close()


def test_documents_are_written_in_row_groups_and_read_back_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_ROW_GROUP_ROWS", 3)
    layout = layout_of(str(tmp_path))
    rows = [
        row(f"{number}.md", error="failed at https://user:hunter2secret@example.com" if number == 7 else None)
        for number in range(8)
    ]
    written = shards.write_shard_of_parts(layout, "documents", "a.parquet", shards.documents_in_parts(iter(rows)))
    file = pq.ParquetFile(layout.shard("documents", "a.parquet"))
    table = file.read()
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [3, 3, 2]
    assert (written.rows, table.column("path").to_pylist()) == (8, [each.path for each in rows])
    assert "hunter2secret" not in table.column("error").to_pylist()[7]
