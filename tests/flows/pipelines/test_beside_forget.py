"""Files that `forget` replaces during a read are not damage: the reader continues with the new version."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from parquetry.errors import PublishConflict, SettingsError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.planning.rows import new_stamp
from parquetry.serving.cli.main import run
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import load_settings
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.rewrite import restore_version
from parquetry.tasks.engine.base import DirectEngine
from tests.documentation import ROOT
from tests.servers.seaweed import S3Server

pytestmark = pytest.mark.slow

SETTINGS = """
[corpus]
root = "{corpus}"
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


class Elsewhere:
    """Another process, which runs commands one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: str) -> None:
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        done = json.loads(self._process.stdout.readline())
        assert done["code"] == 0, done


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    command = [sys.executable, "-m", "tests.command_server"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Elsewhere(process)
        process.stdin.close()


class Place:
    """A corpus of public documents and of a user's private ones, in files that contain both."""

    def __init__(self, root: Path, corpus: str, other: Elsewhere) -> None:
        self.root = root
        self.file = root / "parquetry.toml"
        self._other = other
        self.move(corpus)

    def move(self, corpus: str) -> None:
        """Use the corpus at another place."""
        self.corpus = corpus
        self.file.write_text(SETTINGS.format(root=self.root, corpus=corpus))

    def fill(self) -> None:
        for folder in ("team", "own"):
            (self.root / folder).mkdir()
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
        return Lake(self.corpus, create=True)

    def forget(self) -> None:
        """Erase ada's data in another process."""
        (self.root / "own" / "elm.md").unlink()
        self._other.run("forget", "--user", "ada", "--yes", "--config", str(self.file))


@pytest.fixture(scope="module", params=["folder", "bucket"])
def made(request, tmp_path_factory):
    """A place, a copy of its files, the server with its corpus, if there is one, and its bucket."""
    root = tmp_path_factory.mktemp("made") / "place"
    root.mkdir()
    server: S3Server | None = None
    corpus, bucket = str(root / "corpus"), ""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "bucket":
            server = request.getfixturevalue("s3_server")
            for name, value in server.environment().items():
                patch.setenv(name, value)
            patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
            bucket = server.bucket()
            corpus = f"s3://{bucket}/kb"
        with elsewhere() as other:
            place = Place(root, corpus, other)
            place.fill()
            yield place, shutil.copytree(root, root.parent / "pristine"), server, bucket


@pytest.fixture
def place(made):
    """The place in its original state: copying takes less than publishing again."""
    found, pristine, server, bucket = made
    shutil.rmtree(found.root)
    shutil.copytree(pristine, found.root)
    if server is not None:
        found.move(f"s3://{server.copy_of(bucket)}/kb")
    return found


def between_listing_and_reading(monkeypatch, act, of=None):
    """Call a function after the files of a version, or of the newest, were listed for the first time."""
    real, done = Lake.snapshot, []

    def snapshot(lake, version=None, **options):
        listed = real(lake, version, **options)
        if not done and version == of:
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


@pytest.mark.parametrize("asked", READERS.values(), ids=READERS.keys())
def test_reader_answers_from_the_version_after(place, monkeypatch, capsys, asked):
    capsys.readouterr()
    happened = between_listing_and_reading(monkeypatch, place.forget)
    name, *arguments = asked
    code = place.run(name, *arguments)
    told = capsys.readouterr()
    assert (code, told.err) == (0, "")
    assert json.loads(told.out)
    assert "elm" not in told.out
    assert happened


@pytest.mark.parametrize(
    "asked", [["refresh", "--direct"], ["reindex", "oak.md", "--direct"], ["restore", "--version", "1"]]
)
def test_run_ends_well_from_the_version_after(place, monkeypatch, capsys, asked):
    place.write("team/ash.md", "The ash bends.")
    capsys.readouterr()
    happened = between_listing_and_reading(monkeypatch, place.forget)
    name, *arguments = asked
    assert place.run(name, *arguments) == 0, capsys.readouterr()
    assert happened
    capsys.readouterr()
    assert place.run("doctor") == 0, capsys.readouterr()
    assert place.run("sql", "SELECT text FROM texts ORDER BY text") == 0
    text = "dried" if name == "restore" else "oiled"
    assert f"The oak is {text}." in capsys.readouterr().out


def test_earlier_version_that_gave_way_is_told_as_erased(place, monkeypatch):
    """The retry starts from the listing, which shows that the version was erased."""
    place.write("team/ash.md", "The ash bends.")
    assert place.run("refresh", "--direct") == 0
    happened = between_listing_and_reading(monkeypatch, place.forget, of=2)
    with pytest.raises(SettingsError, match="was erased since"):
        restore_version(place.lake, 2, new_stamp())
    assert happened


def test_files_that_give_way_while_a_conflict_is_looked_into_are_read_from_where_they_went(place, monkeypatch):
    real, tried = Lake.publish, []

    def publish(lake, *arguments):
        tried.append(arguments)
        if len(tried) == 1:
            between_listing_and_reading(monkeypatch, place.forget)
            raise PublishConflict("somebody was first")
        return real(lake, *arguments)

    monkeypatch.setattr(Lake, "publish", publish)
    place.write("team/oak.md", "The oak is waxed.")
    report = run_refresh(Request(load_settings(str(place.file))), DirectEngine(), Observer())
    assert (len(tried), report.documents.changed) == (2, 1)
    assert place.run("doctor") == 0


def test_file_that_gives_way_while_batches_look_vectors_up_is_read_from_where_it_went(place, monkeypatch, capsys):
    from parquetry.storage.lake.stored import Stored

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
    """The newest version still refers to the file."""
    lost = max(place.lake.snapshot().files["documents"])
    filesystem_at(lost).delete(lost)
    capsys.readouterr()
    assert place.run("documents") == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"parquetry: the corpus is damaged: {lost} is missing")


def test_version_that_was_asked_for_and_erased_is_told_as_erased(place, monkeypatch, capsys):
    place.forget()
    capsys.readouterr()
    assert place.run("documents", "--version", "2") == 2
    assert "was erased since" in capsys.readouterr().err
