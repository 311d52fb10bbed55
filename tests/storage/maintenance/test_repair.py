"""The doctor names any damage and restores what the index, unnamed shards and sources still hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from parquetry.errors import ParquetryError
from parquetry.serving.cli.main import run
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.staging import copy_name
from parquetry.storage.maintenance.doctor import examine
from tests.corruption import answers, damages, files_of, kind_of, make_corpus, state
from tests.damage import flip_vector

# Every kind of file is damaged in turn, and the whole corpus compared after each repair: minutes on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Create the workshop, the content of its corpus, its answers, and a copy of it."""
    workshop = make_corpus(tmp_path_factory.mktemp("made"))
    corpus = workshop.root / "corpus"
    for copy in corpus.rglob("*.copy"):
        # As in corpora of earlier programs: another test covers restoring from a copy.
        copy.unlink()
    held, found = state(corpus), answers(workshop.settings)
    assert all(held.values())
    assert examine(Lake(str(corpus))).findings == ()
    pristine = Path(shutil.copytree(corpus, workshop.root / "pristine"))
    settings = workshop.root / "parquetry.toml"
    source = f'[[source]]\nname = "docs"\nuri = "{workshop.folder}"'
    settings.write_text(f'[corpus]\nroot = "{corpus}"\n{source}\n[extraction]\nworkers = 1\n')
    return workshop, held, found, pristine


@pytest.fixture
def corpus(made):
    """Return the corpus in its original state."""
    workshop, _, _, pristine = made
    place = workshop.root / "corpus"
    shutil.rmtree(place)
    return Path(shutil.copytree(pristine, place))


def fixed(corpus, capsys) -> dict:
    """Return the output of `parquetry doctor --fix --json`."""
    code = run(["doctor", "--fix", "--json", "--config", str(corpus.parent / "parquetry.toml")])
    told = json.loads(capsys.readouterr().out)
    assert code == (0 if told["healthy"] else 1)
    return told


def named_by_doctor(corpus) -> str:
    try:
        return " ".join(each.detail for each in examine(Lake(str(corpus))).findings if each.severity == "problem")
    except ParquetryError as error:
        return str(error)


OWN_ROWS = {
    "decisions: shard": {"decisions"},
    "notes: shard": {"notes"},
    "searches: shard": {"searches"},
}
"""damage -> tables without another copy of their rows, which are lost with the shard"""


EVERY = ("",)
SOME = ("documents", "chunks", "search index")


@pytest.mark.parametrize(("how", "where"), [("deleted", EVERY), ("flipped", SOME), ("emptied", SOME), ("halved", SOME)])
def test_every_kind_of_file_is_named_and_mended(made, corpus, capsys, how, where):
    workshop, held, found, pristine = made
    files = {kind_of(file, corpus): file for file in files_of(corpus)}
    assert len(files) == 19
    for kind, file in files.items():
        if not kind.startswith(where):
            continue
        shutil.rmtree(corpus)
        shutil.copytree(pristine, corpus)
        ways = [damage for name, damage in damages(file) if name == how]
        ways[len(ways) // 2]()
        if kind == "search index":
            # An older index takes its place; a flipped bit may lie in an unused part of the file.
            assert how in ("deleted", "flipped") or file.name in named_by_doctor(corpus)
        else:
            assert file.name in named_by_doctor(corpus), (kind, how)
        told = fixed(corpus, capsys)
        assert told["healthy"], (kind, told)
        after = state(corpus)
        lost = {table for table, rows in held.items() if rows - after[table]}
        assert lost <= OWN_ROWS.get(kind, set()), (kind, told)
        # A repair is a run of its own, and may have to record what is known.
        more = {table for table, rows in held.items() if after[table] - rows} - {"runs", "searches"}
        assert more <= ({"decisions"} if kind == "decisions: shard" else set()), kind
        assert answers(workshop.settings) == found, kind


@pytest.mark.parametrize("how", ["deleted", "flipped"])
def test_newest_commit_is_put_back_from_its_copy(made, corpus, capsys, how):
    _, held, _, _ = made
    shutil.rmtree(corpus / "index")
    for table in ("documents", "decisions"):
        newest = max((corpus / table / "_delta_log").glob("*.json"))
        content = newest.read_bytes()
        newest.with_name(copy_name(newest.name)).write_bytes(content)
        next(damage for name, damage in damages(newest) if name == how)()
        assert newest.name in named_by_doctor(corpus)
        told = fixed(corpus, capsys)
        assert told["healthy"]
        assert told["steps"][0].startswith(f"put {table}/_delta_log/{newest.name} back from its copy, because it is ")
        assert newest.read_bytes() == content
        assert {table: rows for table, rows in state(corpus).items() if table != "runs"} == {
            table: rows for table, rows in held.items() if table != "runs"
        }


@pytest.mark.parametrize("kind", ["entries-00000", ""])
def test_chunks_of_entries_come_back_from_their_texts(made, corpus, capsys, kind):
    _, held, _, _ = made
    shutil.rmtree(corpus / "index")
    for shard in (corpus / "chunks").glob(f"*{kind}.parquet"):
        shard.unlink()
    told = fixed(corpus, capsys)
    assert told["healthy"]
    (step,) = [step for step in told["steps"] if "of chunks" in step]
    assert step.endswith("take back 3 rows of chunks from their texts")
    assert state(corpus)["chunks"] == held["chunks"]
    assert state(corpus)["entries"] == held["entries"]


@pytest.mark.parametrize("table", ["runs", "failures"])
def test_records_that_no_index_has_are_told_of_as_lost(made, corpus, capsys, table):
    shutil.rmtree(corpus / "index")
    newest = max((corpus / table).glob("*.parquet"))
    newest.unlink()
    told = fixed(corpus, capsys)
    assert told["healthy"]
    (lost,) = told["lost"]
    assert "which only a backup has" in lost
    assert newest.name in lost


@pytest.mark.parametrize("table", ["documents", "chunks", "texts"])
def test_without_an_index_the_sources_give_back_the_rest(made, corpus, capsys, table):
    _, held, _, _ = made
    shutil.rmtree(corpus / "index")
    newest = max((corpus / table).glob("*.parquet"))
    newest.unlink()
    told = fixed(corpus, capsys)
    if table == "documents":
        (lost,) = told["lost"]
        assert newest.name in lost
        assert "`parquetry refresh` and `sessions refresh` bring back" in lost
        assert run(["refresh", "--direct", "--config", str(corpus.parent / "parquetry.toml")]) == 0
    else:
        assert told["lost"] == []
    after = state(corpus)
    assert after["documents"] == held["documents"]
    assert after["chunks"] == held["chunks"]
    assert after["texts"] == held["texts"]


def test_removed_document_stays_removed_when_its_tombstone_is_lost(made, corpus, capsys):
    _, held, _, _ = made
    (shard,) = [
        file
        for file in Lake(str(corpus)).snapshot(2).files["documents"]
        if file not in Lake(str(corpus)).snapshot(1).files["documents"]
    ]
    Path(shard).write_bytes(b"")
    assert fixed(corpus, capsys)["healthy"]
    assert state(corpus)["documents"] == held["documents"]


def test_shard_that_has_a_footer_and_cannot_be_read_is_read_by_no_step(made, corpus, capsys):
    _, held, _, _ = made
    shard = min((corpus / "documents").glob("*.parquet"))
    group = pq.read_metadata(shard).row_group(0)
    content = bytearray(shard.read_bytes())
    for column in range(group.num_columns):
        # The header of its page.
        content[group.column(column).data_page_offset + 1] ^= 0xFF
    shard.write_bytes(content)
    assert fixed(corpus, capsys)["healthy"]
    assert state(corpus)["documents"] == held["documents"]


def test_wrong_vector_is_blamed_on_its_shard_and_taken_back_from_the_index(made, corpus, capsys):
    _, held, _, _ = made
    shard = min((corpus / "chunks").glob("*.parquet"))
    flip_vector(shard)
    findings = {each.check: each.detail for each in examine(Lake(str(corpus))).findings}
    assert findings["changed-file"].endswith(f"chunks/{shard.name} (column vector)")
    assert "index" not in findings
    told = fixed(corpus, capsys)
    assert [step for step in told["steps"] if "take back" in step and "from the search index" in step]
    assert state(corpus)["chunks"] == held["chunks"]


def test_what_only_a_source_can_give_back_is_named_if_the_source_is_gone(made, corpus, capsys):
    shutil.rmtree(corpus / "index")
    min((corpus / "texts").glob("*.parquet")).unlink()
    settings = corpus.parent / "parquetry.toml"
    away = corpus.parent / "away.toml"
    away.write_text(settings.read_text().replace("/docs", "/nowhere"))
    assert run(["doctor", "--fix", "--config", str(away)]) == 1
    output = capsys.readouterr().out
    assert "lost: " in output
    assert "which only the source can give back" in output
    assert "problem missing-text" in output
    # Once the source is back:
    assert fixed(corpus, capsys)["healthy"]


def test_what_is_done_is_told_before_and_a_healthy_corpus_is_left_alone(made, corpus, capsys):
    before = {file: file.read_bytes() for file in files_of(corpus)}
    assert fixed(corpus, capsys)["steps"] == []
    assert {file: file.read_bytes() for file in files_of(corpus)} == before
    shard = max((corpus / "runs").glob("*.parquet"))
    shard.write_bytes(b"")
    assert run(["doctor", "--config", str(corpus.parent / "parquetry.toml")]) == 1
    assert "`parquetry doctor --fix` repairs" in capsys.readouterr().out
    assert run(["doctor", "--fix", "--config", str(corpus.parent / "parquetry.toml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    gone = f"drop 1 shard of runs that cannot be used ({shard.name})"
    assert lines[0] == f"repair: {gone}; take back 1 row of runs from the search index"
    assert "is healthy" in lines[-1]


def test_quick_repair_is_refused(corpus, capsys):
    assert run(["doctor", "--fix", "--quick", "--config", str(corpus.parent / "parquetry.toml")]) == 2
    assert "--fix looks at every byte" in capsys.readouterr().err
