"""Files that `forget` replaces while others read are no damage: they are read again from the new version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knowledge.rows import new_stamp
from knowledge.settings import load_settings
from serving.cli import run
from storage.erasure import forget_user
from storage.lake import Lake

SETTINGS = """
[corpus]
root = "{root}/corpus"
[extraction]
workers = 1
[[source]]
name = "team"
uri = "{root}/team"
[[source]]
name = "own"
uri = "{root}/own"
visibility = "individual"
user_id = "ada"
"""


class Place:
    """A corpus of documents that everybody may see and of a user's own, in files that hold both."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "parquetry.toml"
        self.file.write_text(SETTINGS.format(root=root))
        for folder in ("team", "own"):
            (root / folder).mkdir()
        self.write("team/oak.md", "The oak is dried.")
        assert self.run("refresh", "--direct", "--allow-removals") == 0
        self.write("team/oak.md", "The oak is oiled.")
        self.write("own/elm.md", "The elm is mine.")
        assert self.run("refresh", "--direct") == 0

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def run(self, command: str, *arguments: str) -> int:
        return run([command, *arguments, "--config", str(self.file)])

    @property
    def lake(self) -> Lake:
        return Lake(str(self.root / "corpus"), create=True)

    def forget(self) -> None:
        (self.root / "own" / "elm.md").unlink()
        forget_user(self.lake, "ada", new_stamp(), load_settings(str(self.file)).search)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def between_listing_and_reading(monkeypatch, act):
    """Have something happen after the files of the newest version were listed for the first time."""
    real, done = Lake.snapshot, []

    def snapshot(lake, version=None, **options):
        listed = real(lake, version, **options)
        if not done and version is None:
            done.append(True)
            act()
        return listed

    monkeypatch.setattr(Lake, "snapshot", snapshot)
    return done


READERS = {
    "search": ["search", "oak", "--mode", "text", "--json"],
    "sql": ["sql", "SELECT text FROM texts", "--json"],
    "documents": ["documents", "--json"],
    "show": ["show", "oak.md", "--json"],
    "chunks": ["chunks", "oak.md", "--json"],
    "status": ["status", "--json"],
}


@pytest.mark.parametrize("command", READERS.values(), ids=READERS.keys())
def test_reader_answers_from_the_version_after(place, monkeypatch, capsys, command):
    capsys.readouterr()
    happened = between_listing_and_reading(monkeypatch, place.forget)
    name, *arguments = command
    code = place.run(name, *arguments)
    told = capsys.readouterr()
    assert (code, told.err) == (0, "")
    assert json.loads(told.out)
    assert "elm" not in told.out
    assert happened


@pytest.mark.parametrize(
    "command", [["refresh", "--direct"], ["reindex", "oak.md", "--direct"], ["restore", "--version", "1"]]
)
def test_run_ends_well_from_the_version_after(place, monkeypatch, capsys, command):
    place.write("team/ash.md", "The ash bends.")
    capsys.readouterr()
    happened = between_listing_and_reading(monkeypatch, place.forget)
    name, *arguments = command
    assert place.run(name, *arguments) == 0, capsys.readouterr()
    assert happened
    capsys.readouterr()
    assert place.run("doctor") == 0, capsys.readouterr()
    assert place.run("sql", "SELECT text FROM texts ORDER BY text") == 0
    text = "dried" if name == "restore" else "oiled"
    assert f"The oak is {text}." in capsys.readouterr().out


def test_file_that_gives_way_while_batches_look_vectors_up_is_read_from_where_it_went(place, monkeypatch, capsys):
    from storage.current import Stored

    real, done = Stored.vectors, []

    def vectors(stored, *asked):
        if not done:
            done.append(True)
            place.forget()
        return real(stored, *asked)

    monkeypatch.setattr(Stored, "vectors", vectors)
    place.write("team/copy.md", "The oak is oiled. \n")
    assert place.run("refresh", "--direct", "--json") == 0
    assert done
    assert place.run("doctor") == 0


def test_file_that_is_lost_is_damage_with_a_name(place, capsys):
    """The newest version still names it."""
    lost = max((place.root / "corpus" / "documents").glob("*.parquet"))
    lost.unlink()
    capsys.readouterr()
    assert place.run("documents") == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"parquetry: the corpus is damaged: {lost} is missing")


def test_version_that_was_asked_for_and_erased_is_told_as_erased(place, monkeypatch, capsys):
    place.forget()
    capsys.readouterr()
    assert place.run("documents", "--version", "2") == 2
    assert "was erased since" in capsys.readouterr().err
