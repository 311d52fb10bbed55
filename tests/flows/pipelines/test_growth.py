"""Bytes and files that a refresh writes follow the change, not the corpus."""

import random
from pathlib import Path

import pytest

from parquetry.storage.files.layout import TABLES
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
