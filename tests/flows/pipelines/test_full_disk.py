"""A disk that fills up: a run publishes all or nothing, reports which, and leaves no files that take space."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from parquetry.errors import ParquetryError, classify
from parquetry.serving.cli.main import run
from parquetry.serving.search.service import SearchRequest
from parquetry.storage.files.layout import TABLES
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.doctor import examine
from tests.filled_disk import filled
from tests.series import part_of
from tests.workshop import Workshop


def unchanged(root: Path) -> Workshop:
    """A corpus of two documents; since then one was changed, one was deleted and one is new."""
    workshop = Workshop(root)
    workshop.write("oak.md", "The oak is dried.")
    workshop.write("elm.md", "The elm is sawn.")
    workshop.refresh()
    workshop.write("oak.md", "The oak is oiled.")
    workshop.write("ash.md", "The ash bends.")
    (workshop.folder / "elm.md").unlink()
    return workshop


BEFORE = {"oak.md": "The oak is dried.", "elm.md": "The elm is sawn."}
AFTER = {"oak.md": "The oak is oiled.", "ash.md": "The ash bends."}


def held(workshop: Workshop) -> dict[str, str]:
    """Return the texts of the newest version by path, from the tables."""
    with closing(workshop.reader()) as reader:
        found = reader.tables.execute("SELECT path, text FROM documents JOIN all_texts USING (revision)").fetchall()
    return dict(found)


def searched(workshop: Workshop) -> dict[str, str]:
    with closing(workshop.reader()) as reader:
        hits = reader.search(SearchRequest("oak elm ash", mode="text")).hits
    return {hit.row["path"]: hit.row["text"] for hit in hits}


def leftovers(corpus: Path) -> list[str]:
    """Return the files below a corpus that nothing refers to."""
    named = {path for files in Lake(str(corpus)).snapshot().files.values() for path in files}
    found = [str(path) for table in TABLES for path in (corpus / table).glob("*.*") if str(path) not in named]
    staging, index = corpus / "staging", corpus / "index"
    found += map(str, staging.iterdir() if staging.is_dir() else ())
    return found + [str(path) for path in index.iterdir() if not path.name.startswith(("index-", "refresh.lock"))]


def healthy(workshop: Workshop) -> bool:
    return examine(workshop.lake, workshop.settings.search).healthy


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Workshop:
    return unchanged(tmp_path_factory.mktemp("prepared"))


def copied(workshop: Workshop, root: Path) -> Workshop:
    shutil.copytree(workshop.root, root, copy_function=shutil.copy2, dirs_exist_ok=True)
    return Workshop(root)


PARTS, CALLS = 2, 12
"""parts of the calls that fail, by processes, and calls that a run tries"""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_disk_that_is_full_from_any_call_on_leaves_a_whole_corpus(prepared, tmp_path, part):
    workshop = copied(prepared, tmp_path / "whole")
    with filled(workshop.root / "corpus") as disk:
        workshop.refresh(allow_removals=True)
    for last in part_of(range(len(disk.calls)), CALLS)[part::PARTS]:
        workshop = copied(prepared, tmp_path / str(last))
        corpus = workshop.root / "corpus"
        told = None
        with filled(corpus, last):
            try:
                report = workshop.refresh(allow_removals=True)
            except (ParquetryError, OSError) as error:
                report, told = None, classify(error).detail
        try:
            if report is None:
                assert told is not None
                unconfirmed = "the disk does not confirm it: No space left on device" in told
                assert unconfirmed or told.startswith(f"no space left on device: {corpus}"), told
                assert held(workshop) == searched(workshop)
                assert held(workshop) in ([BEFORE, AFTER] if unconfirmed else [BEFORE])
            else:
                assert report.version == 2
                assert held(workshop) == AFTER
                # An index file that the disk does not confirm is reported as not written, too.
                assert report.index_error is not None
                assert index_version(corpus) == (2 if last == len(disk.calls) - 1 else 1)
            assert healthy(workshop)
            assert leftovers(corpus) == []
            again = workshop.refresh(allow_removals=True)
            assert again.index_error is None
            assert held(workshop) == searched(workshop) == AFTER
        except BaseException as error:
            error.add_note(f"full after {last} of {len(disk.calls)} calls, before {disk.calls[last]}")
            raise
        shutil.rmtree(workshop.root)


def index_version(corpus: Path) -> int:
    return max(int(path.stem.removeprefix("index-")) for path in (corpus / "index").glob("index-*.duckdb"))


def test_published_without_index_is_told_on_the_main_line_and_has_its_own_exit_code(workshop, capsys):
    """This used to be a note on documents, with exit code 0."""
    workshop.write("oak.md", "The oak is dried.")
    blocked = workshop.root / "blocked"
    blocked.write_text("a file where a folder is needed")
    settings = workshop.root / "parquetry.toml"
    settings.write_text(
        f'[corpus]\nroot = "{workshop.root}/corpus"\n[extraction]\nworkers = 1\n[search]\nindex_folder = "{blocked}"\n'
        f'[[source]]\nname = "docs"\nuri = "{workshop.folder}"\n'
    )
    command = ["refresh", "--direct", "--config", str(settings)]
    assert run(command) == 5
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Corpus ")]
    assert "published version 1, but its search index is not written: " in line
    assert str(blocked) in line
    assert run([*command, "--json"]) == 5
    told = json.loads(capsys.readouterr().out)
    assert str(blocked) in told["index_error"]
    blocked.unlink()
    assert run([*command, "--json", "--strict"]) == 0
    assert json.loads(capsys.readouterr().out)["index_error"] is None


def test_erased_without_an_index_is_told_and_has_its_own_exit_code(workshop, capsys):
    workshop.sections["source"] = {"visibility": "individual", "user_id": "ada"}
    workshop.write("oak.md", "The oak is dried.")
    workshop.refresh()
    (workshop.root / "corpus" / "index" / "refresh.lock").unlink()
    (workshop.root / "corpus" / "index" / "refresh.lock").mkdir()
    command = ["forget", "--user", "ada", "--yes", "--corpus", str(workshop.root / "corpus")]
    assert run(command) == 5
    told = capsys.readouterr().out
    assert "Rows erased: 1 of documents, 1 of texts, 1 of chunks." in told
    index = workshop.root / "corpus" / "index"
    assert f"and the search index, which is not written: the search index in {index} cannot be written" in told
    assert not list(index.glob("*.duckdb"))
    assert held(workshop) == {}


def test_index_that_does_not_fit_leaves_the_older_one_and_nothing_else(workshop, capsys):
    workshop.write("oak.md", "The oak is dried.")
    workshop.refresh()
    index = workshop.root / "corpus" / "index"
    before = {path.name: path.read_bytes() for path in index.iterdir()}
    workshop.write("oak.md", "The oak is oiled.")
    with filled(index, 0):
        report = workshop.refresh()
    assert report.version == 2
    assert report.index_error is not None
    assert report.index_error.startswith(f"no space left on device: {index}/building-")
    assert "free " in report.index_error
    assert {path.name: path.read_bytes() for path in index.iterdir()} == before
