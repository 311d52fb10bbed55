"""Vectors, texts and rows are reused only from intact shards."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquetry import ids
from parquetry.errors import DamagedCorpus
from parquetry.planning.diff import Reindex
from parquetry.serving.cli.doctor_command import Repair, mend
from parquetry.storage.lake.checksums import recorded_hashes
from parquetry.storage.lake.stored import Stored
from tests.commits_by_hand import rewrite_commit
from tests.damage import flip_vector, replace_in_column
from tests.storage.shelf import EMBEDDER

pytestmark = pytest.mark.slow
ONE = ids.text_hash("one")


def shards(shelf):
    return sorted((shelf.root / "chunks").glob("*.parquet"))


def found(shelf, orphans=()):
    vectors = Stored(shelf.lake.snapshot(), orphans).vectors([ONE], EMBEDDER)
    return vectors[ONE].vector.tolist() if vectors else None


def test_vector_with_a_flipped_bit_is_not_used_and_its_file_is_named_once(shelf, caplog):
    shelf.publish({"a.md": ["one"]}, vectors=[[1, 2, 3, 4]])
    assert found(shelf) == [1, 2, 3, 4]
    (shard,) = shards(shelf)
    flip_vector(shard)
    with caplog.at_level(logging.WARNING):
        stored = Stored(shelf.lake.snapshot())
        assert stored.vectors([ONE], EMBEDDER) == stored.vectors([ONE], EMBEDDER) == {}
    (warning,) = [each.message for each in caplog.records if each.name == "parquetry"]
    assert warning.startswith(f"{shard} is damaged and is not used")


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_same_text_of_another_shard_gives_its_vector(shelf, damage):
    shelf.publish({"a.md": ["one"]}, vectors=[[1, 2, 3, 4]])
    shelf.publish({"b.md": ["one"]}, vectors=[[4, 3, 2, 1]])
    shard, _ = shards(shelf)
    if damage == "flipped":
        flip_vector(shard)
    elif damage == "cut":
        shard.write_bytes(shard.read_bytes()[:-9])
    else:
        shard.unlink()
    assert found(shelf) == [4, 3, 2, 1]


def test_shard_that_a_crashed_run_left_is_used_if_its_pages_are_whole(shelf):
    shelf.write({"a.md": ["one"]}, vectors=[[1, 2, 3, 4]], register=False)
    snapshot = shelf.lake.snapshot()
    (orphan,) = shelf.lake.orphans(snapshot)
    assert found(shelf, [orphan]) == [1, 2, 3, 4]
    flip_vector(Path(orphan))
    assert found(shelf, [orphan]) is None


def test_shard_without_a_checksum_gives_no_vector_that_no_model_returns(shelf):
    for number, vector in enumerate(([1, 2, 3, 1e37], [1, 2, 3, float("nan")], [1, 2, 3, 4])):
        shelf.publish({"a.md": ["one"]}, vectors=[vector])
        (shard,) = [each for each in shards(shelf) if each.name.startswith(f"run-{number + 1}-")]
        pq.write_table(pq.read_table(shard), shard)
        log = shelf.root / "chunks" / "_delta_log" / f"{number + 1:020}.json"
        digest = recorded_hashes(shelf.lake.layout, "chunks", [shard.name])[shard.name]
        rewrite_commit(log, digest, "")
        assert found(shelf) == (vector if vector[3] == 4 else None)
        if number < 2:
            shard.write_bytes(b"")


def test_rebuilding_everything_over_a_flipped_vector_computes_it_again(workshop, caplog):
    workshop.write("oak.md", "The oak is dried in a kiln.")
    workshop.write("elm.md", "The elm is sawn wet.")
    workshop.refresh()
    before = _vectors(workshop)
    flip_vector(next((workshop.root / "corpus" / "chunks").glob("*.parquet")))
    report = workshop.refresh(force=Reindex("extract", lambda _: True))
    assert (report.documents.changed, report.work.chunks_embedded) == (2, 2)
    assert _vectors(workshop) == before
    assert "is damaged and is not used" in caplog.text


@pytest.mark.parametrize("damage", ["other text", "cut", "gone"])
def test_text_of_a_damaged_shard_is_read_from_its_source_again(workshop, caplog, damage):
    workshop.write("oak.md", "# Oak\n\nThe oak is dried in a kiln.")
    workshop.refresh()
    workshop.write("elm.md", "# Elm\n\nThe elm is sawn wet.")
    workshop.refresh()
    shard = min((workshop.root / "corpus" / "texts").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    if damage == "other text":
        replace_in_column(shard, "text", "kiln", "yard")
    elif damage == "cut":
        shard.write_bytes(shard.read_bytes()[:-9])
    else:
        shard.unlink()
    workshop.sections["chunking"] = {"size": 40, "overlap": 0}
    report = workshop.refresh()
    assert report.documents.changed == 2
    assert report.work.bytes_read == (workshop.folder / "oak.md").stat().st_size
    assert {text.rpartition("The ")[2] for text in _vectors(workshop)} == {
        "oak is dried in a kiln.",
        "elm is sawn wet.",
    }
    assert f"{shard} is damaged and is not used" in caplog.text


@pytest.mark.parametrize("run", ["refresh", "plan"])
def test_row_of_a_damaged_shard_is_not_published_again(workshop, run):
    workshop.write("oak.md", "# Oak\n\nThe oak is dried in a kiln.")
    workshop.refresh()
    (shard,) = (workshop.root / "corpus" / "documents").glob("*.parquet")
    replace_in_column(shard, "title", "Oak", "Ash")
    workshop.sections["source"] = {"tags": ["wood"]}
    with pytest.raises(DamagedCorpus, match=rf"^the corpus is damaged: {shard} is not what was written"):
        getattr(workshop, run)()
    mend(workshop.settings, Repair(silent=True))
    workshop.refresh()
    row = workshop.rows()["oak.md"]
    assert (row.title, row.access.tags) == ("Oak", ("wood",))


def _vectors(workshop):
    snapshot = workshop.lake.snapshot()
    newest = max(snapshot.files["chunks"], key=lambda file: Path(file).stat().st_mtime_ns)
    table: pa.Table = pq.read_table(newest)
    return {row["text"]: row["vector"] for row in table.to_pylist()}
