"""Bytes and files that a refresh writes follow the change, not the corpus."""

import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake import table_state
from tests.openings import opened
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

CHANGED = 10
WORDS = ["".join(random.Random(number).choices("abcdefghijklmnop", k=3 + number % 7)) for number in range(900)]


def write(workshop, number, seed):
    workshop.write(f"{number}.md", " ".join(random.Random(seed).choices(WORDS, k=300)))


def written(root: Path):
    """Return the size of each file of the tables by path; second copies of commits and checkpoints aside."""
    files = [file for table in TABLES for file in (root / table).rglob("*") if file.is_file()]
    return {file: file.stat().st_size for file in files if file.suffix in (".parquet", ".json")}


def refreshed(folder, documents):
    """Refresh a corpus in which a few documents changed; return the report, and the files that it wrote."""
    workshop = Workshop(folder)
    for number in range(documents):
        write(workshop, number, number)
    workshop.refresh()
    for number in range(CHANGED):
        write(workshop, number, 10_000 + number)
    root = Path(workshop.settings.corpus.root)
    before = written(root)
    report = workshop.refresh()
    after = written(root)
    assert not before.keys() - after.keys()
    assert all(after[file] == size for file, size in before.items())
    return report, {file: size for file, size in after.items() if file not in before}


def test_ten_changed_documents_write_four_shards_whatever_the_corpus_holds(tmp_path):
    """Of 200,000 chunks as of 200: shards and commits are added, and nothing is written again."""
    total = []
    for documents in (20, 120):
        report, files = refreshed(tmp_path / str(documents), documents)
        assert (report.documents.changed, report.work.chunks_embedded) == (CHANGED, report.work.chunks_written)
        shards = [file for file in files if file.suffix == ".parquet"]
        commits = [file for file in files if file.suffix == ".json"]
        assert sorted(file.parent.name for file in shards) == ["chunks", "documents", "runs", "texts"]
        assert sorted(file.parent.parent.name for file in commits) == ["chunks", "documents", "runs", "texts"]
        vectors = 4 * 256 * (report.work.chunks_written + CHANGED)
        total.append(sum(files.values()))
        assert total[-1] <= 3 * (report.work.bytes_read + vectors)
    assert total[1] <= 1.02 * total[0]


def opened_by_a_refresh(workshop, seed):
    """Refresh with one changed document, as a new program would; return the number of opened files by folder."""
    root = Path(workshop.settings.corpus.root)
    write(workshop, 0, seed)
    table_state._kept.clear()
    with opened([root / table for table in TABLES]) as found:
        assert workshop.refresh().documents.changed == 1
    return Counter(file.parent.name for file in found if file.suffix == ".parquet")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells what is opened")
def test_small_refreshes_open_the_same_files_however_many_were_before(tmp_path):
    """Neither the plan, nor the search for vectors, nor the index opens a shard that an earlier refresh wrote."""
    workshop = Workshop(tmp_path)
    for number in range(3):
        write(workshop, number, number)
    workshop.refresh()
    # Few shards are read rather than looked up, and the index is a single file at first.
    for seed in range(8):
        write(workshop, 1, 1000 + seed)
        workshop.refresh()
    few = opened_by_a_refresh(workshop, 2000)
    for seed in range(12):
        write(workshop, 1, 3000 + seed)
        workshop.refresh()
    many = opened_by_a_refresh(workshop, 4000)
    assert many == few
    assert max(many.values()) <= 4
