"""A commit that differs from what was written is reported as damage, and never shrinks the corpus silently."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from parquetry.errors import DamagedCorpus
from parquetry.serving.search.service import SearchRequest
from parquetry.storage.lake.commits import commit, open_table
from parquetry.storage.lake.lake import SEARCHED, Lake
from parquetry.storage.lake.seals import fault, sealed
from parquetry.storage.lake.shards import Shard
from parquetry.storage.lake.staging import CHECKPOINT_EVERY, commit_name, copy_name
from parquetry.storage.maintenance.doctor import examine
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

TREES = {"oak.md": "The oak is dried.", "elm.md": "The elm is sawn.", "ash.md": "Ash bends."}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Create a corpus of three publishes."""
    workshop = Workshop(tmp_path_factory.mktemp("made"))
    for name, text in TREES.items():
        workshop.write(name, text)
        workshop.refresh()
    return workshop


@pytest.fixture
def corpus(made, tmp_path):
    """Return a copy of the corpus."""
    return Path(shutil.copytree(made.root / "corpus", tmp_path / "corpus"))


def commits(corpus, table="documents"):
    return sorted((corpus / table / "_delta_log").glob("*.json"))


def refused(corpus) -> str:
    with pytest.raises(DamagedCorpus) as raised:
        Lake(str(corpus)).snapshot()
    assert "\n" not in str(raised.value)
    return str(raised.value)


DAMAGES = {
    "empty": lambda content: b"",
    "blank": lambda content: b"\0" * len(content),
    "half": lambda content: content[: len(content) // 2],
    "first line": lambda content: content.splitlines()[0],
    "last line": lambda content: content.splitlines()[-1],
    "not JSON": lambda content: b"<html>",
    "another commit's": lambda content: content.replace(b'"add"', b'"adb"'),
}


@pytest.mark.parametrize("table", ["documents", "chunks", "texts"])
@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_commit_is_named(corpus, table, how):
    for each in commits(corpus, table):
        content = each.read_bytes()
        damaged = DAMAGES[how](content)
        if damaged == content:
            continue
        each.write_bytes(damaged)
        assert str(each) in refused(corpus)
        each.write_bytes(content)
    assert Lake(str(corpus)).snapshot().version == 3


def test_tables_that_a_reader_can_do_without_are_opened_when_they_are_looked_up(corpus):
    whole = Lake(str(corpus)).snapshot()
    snapshot = Lake(str(corpus)).snapshot(needed=SEARCHED)
    damaged = commits(corpus, "texts")[-1]
    damaged.write_bytes(b"")
    assert {table: snapshot.files[table] for table in SEARCHED} == {table: whole.files[table] for table in SEARCHED}
    with pytest.raises(DamagedCorpus, match=re.escape(f"{damaged} is empty")):
        _ = snapshot.files["texts"]
    assert list(snapshot.damaged) == ["texts"]
    assert snapshot.files["runs"] == whole.files["runs"]


def test_every_flipped_bit_of_a_commit_is_seen(corpus):
    for each in commits(corpus)[:2]:
        content = each.read_bytes()
        for place in range(len(content)):
            for bit in (0, 3, 6):
                flipped = bytearray(content)
                flipped[place] ^= 1 << bit
                assert fault(bytes(flipped)) is not None, (each.name, place, bit)


def test_commit_that_is_gone_below_a_later_one_is_named(corpus):
    for each in commits(corpus)[:-1]:
        content = each.read_bytes()
        each.unlink()
        assert f"{each} is missing" in refused(corpus)
        each.write_bytes(content)


def test_newest_commit_that_is_gone_is_named_by_its_copy(corpus):
    for table in ("documents", "chunks", "runs", "failures"):
        newest = commits(corpus, table)[-1]
        content = newest.read_bytes()
        newest.unlink()
        assert f"{newest} is missing, and a later commit or a copy of it is there" in refused(corpus)
        newest.write_bytes(content)
    assert Lake(str(corpus)).snapshot().version == 3


def test_a_copy_that_is_damaged_or_of_an_earlier_commit_says_nothing(corpus):
    newest = commits(corpus)[-1]
    (copy,) = newest.parent.glob("*.copy")
    assert copy.read_bytes() == newest.read_bytes()
    for content in (b"", copy.read_bytes()[:-2]):
        copy.with_name(copy_name(commit_name(4))).write_bytes(content)
        assert Lake(str(corpus)).snapshot().version == 3
    copy.rename(copy.with_name(copy_name(commit_name(1))))
    assert Lake(str(corpus)).snapshot().version == 3


def test_damage_is_one_line_of_the_command_line_and_exit_code_4(corpus, capsys):
    from parquetry.serving.cli.main import run

    commits(corpus)[-1].write_bytes(b"")
    assert run(["documents", "--corpus", str(corpus)]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"parquetry: the corpus is damaged: {commits(corpus)[-1]} is empty"


def test_corpus_rolled_back_under_its_index_is_searched_as_it_is_with_a_warning(made, corpus, caplog):
    made.reader().search(SearchRequest("ash"))
    newest = commits(corpus)[-1]
    newest.unlink()
    newest.with_name(copy_name(newest.name)).unlink()
    workshop = Workshop(corpus.parent)
    found = workshop.search("The oak, the elm and ash")
    assert {hit.row["path"] for hit in found.hits} == {"oak.md", "elm.md"}
    (warning,) = [each.message for each in caplog.records if each.name == "parquetry"]
    assert f"corpus {corpus} is at version 2 and was indexed at version 3" in warning
    problems = {each.check: each.detail for each in examine(Lake(str(corpus))).findings if each.severity == "problem"}
    assert problems.keys() == {"missing-commit", "rolled-back"}
    assert f"documents/_delta_log/{commit_name(3)} is missing" in problems["missing-commit"]
    assert "was indexed at version 3" in problems["rolled-back"]


def test_commits_of_earlier_programs_have_no_seal_and_have_to_be_complete():
    add = b'{"add":{"path":"a.parquet"}}'
    info = b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}'
    assert fault(info + b"\n" + add) is None
    assert fault(add + b"\n" + info + b"\n") is None
    assert fault(info) == "is cut short: a part of it is missing"
    assert fault(add) == "is cut short: a part of it is missing"
    assert fault(info + b"\n" + add[:-1]) == "is cut short or damaged in line 2: that is not JSON"
    assert fault(sealed(info + b"\n" + add)) is None
    assert fault(sealed(info + b"\n" + add)[:-3]) == "is not what was written: its checksum differs"


@pytest.fixture
def long(corpus):
    """Create a corpus in which one table has a checkpoint."""
    layout = Lake(str(corpus)).layout
    for number in range(CHECKPOINT_EVERY + 2):
        commit(layout, "searches", [Shard("searches", f"{number}.parquet", 1, 1, "0" * 64)], {})
    return layout


def test_checkpoint_stands_for_the_commits_before_it_and_is_checked(long):
    log = Path(long.log("searches"))
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    for each in sorted(log.glob("*.json"))[:10]:
        each.rename(each.with_suffix(".away"))
    files = open_table(long, "searches").file_uris()
    assert len(files) == CHECKPOINT_EVERY + 2
    # Other Delta readers find it, too.
    assert sorted(DeltaTable(long.table("searches")).file_uris()) == sorted(files)
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    checkpoint.write_bytes(content)
    with pytest.raises(DamagedCorpus, match=f"{checkpoint.name} is not what was written: its checksum differs"):
        open_table(long, "searches")


def test_commit_below_a_checkpoint_is_named_by_reading_its_version_and_by_the_doctor(long):
    below = Path(long.log("searches")) / commit_name(3)
    below.write_bytes(b"")
    assert len(open_table(long, "searches").file_uris()) == CHECKPOINT_EVERY + 2
    with pytest.raises(DamagedCorpus, match=f"{below.name} is empty"):
        open_table(long, "searches", 5)
    (finding,) = [each for each in examine(Lake(long.root)).findings if each.check == "damaged-commit"]
    assert finding.severity == "problem"
    assert finding.detail.endswith(f": searches/_delta_log/{below.name} is empty")


def test_commits_go_on_after_a_checkpoint_and_their_numbers_have_no_gap(long):
    versions = [
        commit(long, "searches", [Shard("searches", f"more-{number}.parquet", 1, 1, "0" * 64)], {}) for number in (1, 2)
    ]
    assert versions == [CHECKPOINT_EVERY + 3, CHECKPOINT_EVERY + 4]
    names = [json.loads(line)["add"]["path"] for line in _newest(long).splitlines() if b'"add"' in line]
    assert names == ["more-2.parquet"]


def _newest(layout) -> bytes:
    return max(Path(layout.log("searches")).glob("*.json")).read_bytes()
