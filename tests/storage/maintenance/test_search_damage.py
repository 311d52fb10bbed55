"""With any file of a corpus damaged, a search is right or names the file, and is never wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from parquetry.errors import DamagedCorpus
from parquetry.storage.connect import connect
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.damage import check_written
from parquetry.storage.lake.staging import copy_name
from tests.storage.damaged_shelf import damage, files_of, later

pytestmark = pytest.mark.slow

SPARED = tuple(table for table in TABLES if table not in ("documents", "chunks"))
"""tables that a search does not need"""


# --- tables that a search does not need


COPIED = ("runs", "failures")
"""tables that are copied into the index"""


@pytest.mark.parametrize(
    ("table", "indexed"),
    [pytest.param(table, True, id=table) for table in SPARED]
    + [pytest.param(table, False, id=f"{table} not indexed") for table in COPIED],
)
def test_search_does_without_a_damaged_table_that_only_tells_of_things(corpora, found, right, table, indexed):
    for position in (0, -1):
        for how in ("deleted", "a bit in the middle"):
            corpus = next(corpora)
            damage(files_of(corpus, table)[position], how)
            if not indexed:
                shutil.rmtree(corpus / "index")
            asked = found(corpus)
            assert (asked.code, asked.out, asked.lines) == (0, right, []), (position, how)


# --- tables that a search needs


@pytest.mark.slow
@pytest.mark.parametrize("table", ["documents", "chunks"])
@pytest.mark.parametrize("how", ["deleted", "half", "a bit in the middle"])
def test_index_is_not_built_from_a_damaged_file(corpora, found, right, table, how):
    number = len(files_of(next(corpora), table))
    for position in range(number):
        corpus = next(corpora)
        file = files_of(corpus, table)[position]
        damage(file, how)
        shutil.rmtree(corpus / "index")
        asked = found(corpus)
        assert (asked.code, asked.out) == (4, "")
        (line,) = asked.lines
        assert f"parquetry: the corpus is damaged: {file} " in line


@pytest.mark.parametrize("table", ["documents", "chunks"])
def test_index_answers_for_a_file_that_is_in_it_already(corpora, found, right, table):
    corpus = next(corpora)
    damage(files_of(corpus, table)[0], "deleted")
    assert found(corpus).out == right


def test_checksums_are_looked_for_in_no_more_commits_than_it_takes(corpus):
    shelf = later(corpus)
    shelf.publish({"d.md": ["the oak again"]})
    snapshot = shelf.lake.snapshot()
    (late,) = [file for file in snapshot.files["documents"] if "/late-" in file]
    for commit in files_of(corpus, "documents"):
        if commit.name in ("00000000000000000000.json", "00000000000000000001.json"):
            commit.unlink()
            commit.mkdir()
    check_written(snapshot, "documents", [late])
    damage(Path(late), "a bit in the middle")
    with pytest.raises(DamagedCorpus, match=f"{late} is not what was written: its checksum differs"):
        check_written(snapshot, "documents", [late])


def test_chunks_that_a_commit_took_along_are_missed(corpus, found):
    """The table of chunks is intact, but older than the table of documents."""
    *_, newest = files_of(corpus, "chunks")
    newest.unlink()
    newest.with_name(copy_name(newest.name)).unlink()
    shutil.rmtree(corpus / "index")
    asked = found(corpus)
    assert asked.code == 4
    assert asked.lines == [
        f"parquetry: the corpus is damaged: {newest} is missing, or an earlier copy of chunks was put back: "
        "chunks of 1 document are not there"
    ]


# --- views


USES = {
    "texts": ["sql", "SELECT count(*) FROM texts"],
    "notes": ["documents", "--notes"],
    "entries": ["entries", "--history"],
    "decisions": ["decisions"],
    "runs": ["history"],
    "failures": ["sql", "FROM failures"],
    "searches": ["sql", "SELECT 1 FROM searches"],
}


@pytest.mark.parametrize("table", SPARED)
@pytest.mark.parametrize("position", [0, -1], ids=["shard", "commit"])
def test_view_of_a_damaged_table_fails_when_it_is_used_and_no_other_does(corpus, ask, table, position):
    file = files_of(corpus, table)[position]
    damage(file, "half")
    for others in (["documents"], ["sql", "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)"]):
        assert ask(corpus, *others).code == 0
    asked = ask(corpus, *USES[table])
    assert (asked.code, asked.out) == (4, "")
    (line,) = asked.lines
    assert f"parquetry: the corpus is damaged: {file} " in line


def test_connection_of_a_program_opens_views_when_they_are_used(corpus):
    damage(files_of(corpus, "runs")[0], "half")
    for search in (True, False):
        with connect(str(corpus), search=search) as connection:
            assert connection.execute("SELECT count(*) FROM documents").fetchall() == [(2,)]
            with pytest.raises(duckdb.Error, match=r"the corpus is damaged: .*/runs/.* is cut short or damaged"):
                connection.execute("SELECT count(*) FROM runs")


def test_statement_that_is_wrong_suspects_no_file(corpus, ask):
    damage(files_of(corpus, "texts")[0], "half")
    for statement in ("SELEC 1", "FROM nowhere", "SELECT 'x'::INTEGER"):
        asked = ask(corpus, "sql", statement)
        assert asked.code == 2
        assert asked.lines[0].startswith("parquetry: SQL: ")


def test_copy_of_a_damaged_table_in_the_index_is_no_shorter_one(corpus, found, right):
    """A reader that opens the index with DuckDB alone gets an error until the file is restored."""
    shard, *_ = files_of(corpus, "runs")
    content = shard.read_bytes()
    damage(shard, "last bit")
    shutil.rmtree(corpus / "index")
    assert found(corpus).out == right
    with duckdb.connect(corpus / "index" / "index-4.duckdb", read_only=True) as index:
        assert index.execute("SELECT count(*) FROM documents").fetchall() == [(2,)]
        with pytest.raises(duckdb.Error, match=f"the corpus is damaged: {shard} "):
            index.execute("FROM runs")
    shard.write_bytes(content)
    later(corpus).publish({"d.md": ["a plane"]})
    assert found(corpus).code == 0
    with duckdb.connect(corpus / "index" / "index-5.duckdb", read_only=True) as index:
        assert index.execute("SELECT run_id FROM runs").fetchall() == [("run-1",)]


# --- writers need everything


@pytest.mark.parametrize("table", SPARED)
def test_who_writes_is_refused_before_anything_is_done(corpus, ask, table):
    *_, commit = files_of(corpus, table)
    damage(commit, "half")
    before = sorted(corpus.rglob("*"))
    shelf = corpus.parent / "documents to come"
    shelf.mkdir()
    commands = (
        ["forget", "--user", "ada", "--yes"],
        ["restore", "--version", "1"],
        ["remove", "a.md"],
        ["refresh", str(shelf), "--direct"],
    )
    for arguments in commands:
        asked = ask(corpus, *arguments)
        assert asked.code == 4, arguments
        assert str(commit) in asked.lines[-1]
    assert sorted(corpus.rglob("*")) == before
