"""A flipped bit in a Parquet file is detected, and its file is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from parquetry.storage.lake.damaged_shards import faulty_columns
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.doctor import examine
from tests.workshop import Workshop

OFFSETS = 12
"""bytes flipped in each file, the first and the last byte among them"""
FAULTS = ("changed-file", "damaged-file")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Create a corpus with a row in every table that a refresh writes."""
    workshop = Workshop(tmp_path_factory.mktemp("made"))
    workshop.write("oak.md", "The oak is dried. " * 30)
    workshop.write("elm.md", "The elm is sawn. " * 30)
    workshop.write("open.csv", 'tree,state\n"oak,dry\n' + "elm,wet\n" * 250)
    workshop.write("cut.pdf", b"%PDF-1.7 cut")
    workshop.refresh()
    return workshop


@pytest.fixture
def corpus(made, tmp_path):
    return Path(shutil.copytree(made.root / "corpus", tmp_path / "corpus"))


def found(corpus):
    return {each.check: each.detail for each in examine(Lake(str(corpus))).findings if each.severity == "problem"}


@pytest.mark.slow
@pytest.mark.parametrize("tables", [("documents", "notes", "runs"), ("chunks", "texts", "failures")])
def test_every_flip_is_seen_and_its_file_named(corpus, tables):
    """A file of each of three tables, as many as a finding names, has a flipped bit at a time."""
    contents = {file: file.read_bytes() for table in tables for file in (corpus / table).glob("*.parquet")}
    assert len(contents) == len(tables)
    for number in range(OFFSETS):
        for file, content in contents.items():
            flipped = bytearray(content)
            flipped[number * (len(content) - 1) // (OFFSETS - 1)] ^= 1 << number % 8
            file.write_bytes(flipped)
        told = [each.detail for each in examine(Lake(str(corpus))).findings if each.check in FAULTS]
        for file in contents:
            table, name = file.parent.name, file.name
            # Changed files are told with their tables, files that cannot be read for each table.
            assert any(
                f" {table}/{name}" in detail or (f"files of {table} " in detail and name in detail) for detail in told
            ), (number, table, told)
    for file, content in contents.items():
        file.write_bytes(content)
    assert found(corpus) == {}


def test_column_of_the_flip_is_named(corpus):
    (file,) = (corpus / "chunks").glob("*.parquet")
    column = pq.read_metadata(file).row_group(0)
    vectors = next(
        column.column(at) for at in range(column.num_columns) if "vector" in column.column(at).path_in_schema
    )
    content = bytearray(file.read_bytes())
    content[vectors.data_page_offset + vectors.total_compressed_size - 3] ^= 64
    file.write_bytes(content)
    assert faulty_columns(str(file)) == ["vector"]
    assert found(corpus)["changed-file"] == (
        f"files are not what was written, by their checksums (1): chunks/{file.name} (column vector)"
    )


def test_documents_of_the_flip_are_named(corpus):
    (file,) = (corpus / "documents").glob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    content = bytearray(file.read_bytes())
    hashes = columns["content_hash"]
    content[hashes.data_page_offset + hashes.total_compressed_size - 3] ^= 64
    file.write_bytes(content)
    assert found(corpus)["changed-file"].endswith(
        f"documents/{file.name} (column content_hash; of cut.pdf, elm.md, oak.md, ...)"
    )
    # If the names themselves are damaged, none is reported.
    paths = columns["path"]
    content[paths.data_page_offset + paths.total_compressed_size - 3] ^= 64
    file.write_bytes(content)
    assert found(corpus)["changed-file"].endswith(f"documents/{file.name} (column path, content_hash)")


def test_quick_examination_reads_no_checksum(corpus, monkeypatch):
    monkeypatch.setattr("parquetry.storage.lake.file_faults.sha256_of", None)
    assert examine(Lake(str(corpus)), quick=True).healthy
