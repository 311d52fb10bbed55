"""The program's private files are readable by their owner only, even under a umask that opens new files to all."""

import os
from pathlib import Path

import pytest

from parquetry.flows.orchestration import server
from parquetry.storage.files.layout import layout_of
from parquetry.storage.index.files import make_place
from parquetry.storage.lake.answers import Answers


@pytest.fixture(autouse=True)
def open_to_all():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


def test_answers_of_language_models_are_in_folders_that_nobody_else_enters(tmp_path):
    corpus = tmp_path / "new" / "corpus"
    kept = Answers(layout_of(str(corpus)))
    kept.put("ada", "k1", {"text": "x"})
    assert mode(corpus) == "755"
    assert [mode(corpus / "answers"), mode(Path(kept.folder("ada")))] == ["700", "700"]


def test_index_in_the_cache_is_in_folders_that_nobody_else_enters(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place, beside = tmp_path / "cache" / "parquetry" / "0123", tmp_path / "corpus" / "index"
    make_place(place)
    make_place(beside)
    assert [mode(place), mode(place.parent), mode(beside)] == ["700", "700", "755"]


def test_home_of_a_server_is_closed_even_if_an_earlier_program_left_it_open(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "parquetry" / "prefect-1"
    home.mkdir(parents=True)
    (home / "prefect.db").touch()
    assert [mode(home), mode(home / "prefect.db")] == ["755", "644"]
    with server._home_of_a_run() as used:
        assert used == home
        assert [mode(home), mode(home / "prefect.db")] == ["700", "600"]
