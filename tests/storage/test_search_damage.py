"""Whatever happens to a file of a corpus, a search is right or names the file, and is never wrong."""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import fields
from itertools import count
from pathlib import Path

import duckdb
import pytest

from knowledge.errors import DamagedCorpus
from knowledge.model import Access, Failure, Note
from knowledge.rows import Stamp
from serving.cli import run
from storage.connect import connect
from storage.damage import check_written
from storage.erasure import forget_user
from storage.layout import TABLES
from storage.shards import write_notes
from storage.staging import copy_name
from tests.records import NOW
from tests.storage.notebook import ELM, OAK, Notebook
from tests.storage.shelf import Shelf

SPARED = tuple(table for table in TABLES if table not in ("documents", "chunks"))
"""tables that a search does not need"""


def make(root):
    """A corpus with rows in every table and an index that is up to date."""
    shelf = Shelf(root)
    shelf.publish({"a.md": ["the oak stands here", "a second oak chunk"], "b.md": ["the elm is sawn by ada"]})
    Notebook(shelf).learn(OAK, ELM)
    shelf.publish({"c.md": ["an ash bends over the oak"]})
    shelf.remove("b.md")
    (first, *_) = shelf.rows()
    note = Note(first.revision, first.uri, "extract", "something was worked around")
    shelf.lake.register([write_notes(shelf.lake.layout, "n.parquet", [note], Stamp("run-1", NOW))], "run-1")
    failure = Failure(**{field.name: 1 if field.name == "attempts" else "x" for field in fields(Failure)})
    shelf.lake.record({"run_id": "run-1", "kind": "refresh", "started_at": NOW, "seconds": 1.0}, [failure])
    shelf.lake.record_searches([{"searched_at": NOW, "query": "oak", "mode": "text", "level": "chunk", "k": 5}])


def later(corpus):
    """A shelf that goes on with a corpus."""
    shelf = Shelf(corpus)
    shelf.run_ids = "late-{}"
    return shelf


DAMAGES = {
    "deleted": lambda content: None,
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "first bit": lambda content: flipped(content, 0),
    "a bit in the middle": lambda content: flipped(content, len(content) // 2),
    "last bit": lambda content: flipped(content, len(content) - 1),
}


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 1 << place % 8
    return bytes(changed)


def damage(file, how):
    content = DAMAGES[how](file.read_bytes())
    file.unlink() if content is None else file.write_bytes(content)


class Asked:
    """What a command said."""

    def __init__(self, code, out, err):
        self.code, self.out = code, out
        self.lines = err.splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "corpus"
    make(root)
    assert run(["search", "oak", "--mode", "text", "--corpus", str(root)]) == 0
    return root


@pytest.fixture
def corpora(made, tmp_path):
    """Copies of it, each at a place of its own."""
    return (Path(shutil.copytree(made, tmp_path / f"{number}")) for number in count())


@pytest.fixture
def corpus(corpora):
    return next(corpora)


@pytest.fixture
def ask(capsys, caplog):
    """Run a command on a corpus; what it warns of stands before what it ends with."""

    def ask(corpus, *arguments):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "parquetry"):
            code = run([*arguments, "--corpus", str(corpus)])
        said = capsys.readouterr()
        warned = [each.getMessage() for each in caplog.records if each.name == "parquetry"]
        return Asked(code, said.out, "\n".join([*warned, said.err.strip()]).strip())

    return ask


@pytest.fixture
def found(ask):
    """Search a corpus; the answer without the seconds."""

    def found(corpus, *options):
        asked = ask(corpus, "search", "the oak", "--mode", "text", "--what", "both", "--json", *options)
        if asked.code == 0:
            told = json.loads(asked.out)
            del told["seconds"]
            asked.out = told
        return asked

    return found


@pytest.fixture
def right(made, found):
    answer = found(made).out
    assert len(answer["results"]) == 4
    return answer


def files_of(corpus, table):
    """Its shards, and the commits that its newest version is read from."""
    return [*sorted((corpus / table).glob("*.parquet")), *sorted((corpus / table / "_delta_log").glob("*.json"))]


# --- what a search does not need


COPIED = ("runs", "failures")
"""tables that the index has a copy of"""


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


# --- what it needs


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
    """The table of chunks is a whole one, only of an earlier time than that of documents."""
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
    """Whoever opens the index with DuckDB alone is told, until the file is back."""
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


# --- who writes needs everything


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


# --- the index


def index_of(corpus):
    (file,) = (corpus / "index").glob("*.duckdb")
    return file


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_index_heals(corpora, found, right, how):
    corpus = next(corpora)
    damage(index_of(corpus), how)
    assert found(corpus).out == right
    asked = found(corpus)
    assert (asked.out, asked.lines) == (right, [])


def with_postings_damaged(corpus):
    """A bit of the words flips, which an opening of the file does not read."""
    file = index_of(corpus)
    with duckdb.connect(file, read_only=True) as index:
        (block,) = index.execute(
            "SELECT min(block_id) FROM pragma_storage_info('parts.postings') WHERE block_id >= 0"
        ).fetchone()
    content = bytearray(file.read_bytes())
    content[3 * 4096 + block * 262_144 + 100] ^= 4
    file.write_bytes(content)
    return file


def test_index_that_turns_out_to_be_damaged_is_built_again_once(corpus, found, right):
    file = with_postings_damaged(corpus)
    asked = found(corpus)
    assert (asked.code, asked.out) == (0, right)
    assert asked.lines == [f"the search index {file} was damaged; it is built again"]
    assert found(corpus).lines == []


def test_sql_heals_the_index_too(corpus, ask):
    with_postings_damaged(corpus)
    asked = ask(corpus, "sql", "SELECT count(*) FROM search_text('oak')", "--json")
    assert json.loads(asked.out)["rows"] == [[3]]


def test_both_files_of_the_index_may_be_damaged(corpus, found, right):
    """What the next file is made from is no better than the one that is replaced."""
    later(corpus).publish({"d.md": ["a plane"]})
    expected = found(corpus).out
    for file in (corpus / "index").glob("*.duckdb"):
        content = bytearray(file.read_bytes())
        for place in range(3 * 4096 + 100, len(content), 262_144):
            content[place] ^= 1
        file.write_bytes(content)
    asked = found(corpus)
    assert asked.out == expected
    assert asked.code == 0


def test_damaged_index_that_cannot_be_replaced_is_not_asked(corpus, found, right):
    file = with_postings_damaged(corpus)
    lock_out(corpus)
    asked = found(corpus)
    assert asked.out == right
    (line,) = asked.lines
    assert line.startswith(f"the search index {file} is damaged, and the search index in {file.parent} cannot be")


# --- an index that cannot be written


def lock_out(corpus):
    """Nobody can write an index any more."""
    (corpus / "index" / "refresh.lock").unlink(missing_ok=True)
    (corpus / "index" / "refresh.lock").mkdir(parents=True)


def test_search_that_can_write_no_index_answers_from_the_newest_there_is(corpus, found, right):
    later(corpus).publish({"d.md": ["the oak again"]})
    lock_out(corpus)
    asked = found(corpus)
    assert (asked.code, asked.out) == (0, right)
    assert asked.out["version"] == 4
    (line,) = asked.lines
    assert line.startswith(f"the search index in {corpus / 'index'} cannot be written: ")
    assert line.endswith("; answering from version 4, the newest that is indexed")


OUTDATED = {
    "removed": lambda shelf: shelf.remove("a.md"),
    "shown to fewer": lambda shelf: shelf.permit("a.md", Access("individual", user_id="ada")),
    "erased": lambda shelf: forget_user(shelf.lake, "eve", Stamp("forget-1", NOW), shelf.settings),
}


@pytest.mark.parametrize("what", OUTDATED)
def test_earlier_index_does_not_answer_with_what_is_not_to_be_seen_any_more(corpus, ask, what):
    shelf = later(corpus)
    shelf.publish({"e.md": ["an oak of eve's"]}, access=Access("individual", user_id="eve"))
    assert ask(corpus, "search", "oak", "--mode", "text").code == 0
    kept = shutil.copytree(corpus / "index", corpus.parent / f"kept-{what}")
    OUTDATED[what](shelf)
    shutil.rmtree(corpus / "index")
    kept.rename(corpus / "index")
    for file in (corpus / "index").glob("index-4.*"):
        # Of before the document came that is erased.
        file.unlink()
    lock_out(corpus)
    asked = ask(corpus, "search", "oak", "--mode", "text", "--user", "eve", "--json")
    texts = {hit["text"] for hit in json.loads(asked.out)["results"]}
    gone = {"an oak of eve's"} if what == "erased" else {"the oak stands here", "a second oak chunk"}
    assert texts
    assert not texts & gone
    (line,) = asked.lines
    assert line.endswith("; answering from the tables, which takes as long as building it")


def test_without_any_index_the_tables_answer_or_the_damaged_file_is_named(corpus, found, right):
    shutil.rmtree(corpus / "index")
    lock_out(corpus)
    asked = found(corpus)
    assert asked.out == right
    assert asked.lines[0].endswith("; answering from the tables, which takes as long as building it")
    file, *_ = files_of(corpus, "chunks")
    damage(file, "half")
    asked = found(corpus)
    assert (asked.code, asked.lines) == (4, [f"parquetry: the corpus is damaged: {file} is cut short or damaged"])
