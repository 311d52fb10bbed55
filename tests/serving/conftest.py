"""A refreshed corpus of a few small texts, and commands run on copies of it."""

import json
import shutil
from dataclasses import dataclass

import pytest

from parquetry.serving.cli.main import run
from tests.workshop import Workshop

TEXTS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n\n## Moving\n\nOne more day for moving house.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    "sub/leave.md": "# Leave of absence\n\nUnpaid, up to six months.\n",
    "sub/it's [odd].txt": "Größe und Öl.",
    "empty.txt": "",
    "broken.docx": b"PK\x03\x04 this is no document at all",
}


@dataclass(frozen=True)
class Result:
    """Exit code and output of a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        """Return the one object on stdout."""
        assert self.stdout.count("\n") == 1, self.stdout
        return json.loads(self.stdout, parse_constant=pytest.fail)

    @property
    def complaint(self):
        """Return the one line on stderr."""
        assert self.stderr.endswith("\n"), self
        assert self.stderr.count("\n") == 1, self.stderr
        assert self.stderr.startswith("parquetry: "), self.stderr
        return self.stderr.removeprefix("parquetry: ").rstrip()


@pytest.fixture(scope="session")
def refreshed(tmp_path_factory):
    """Publish two versions: everything, then one changed text."""
    root = tmp_path_factory.mktemp("refreshed")
    workshop = Workshop(root)
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    workshop.write("oak.txt", "The oak table has four legs and costs 700 euros.")
    workshop.refresh()
    return root


@pytest.fixture
def desk(refreshed, tmp_path, monkeypatch, capsys):
    """Return a copy of the folder with `parquetry.toml`, `docs` and `corpus`, to run commands in."""
    # The first refresh of the copy finds every document moved: its URI has changed.
    shutil.copytree(refreshed, tmp_path / "desk", symlinks=True)
    folder = tmp_path / "desk"
    (folder / "parquetry.toml").write_text(
        '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'
    )
    monkeypatch.chdir(folder)
    return Desk(folder, capsys)


class Desk:
    """A folder in which commands run."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *arguments):
        self._capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Result(code, captured.out, captured.err)

    def write(self, path, text):
        file = self.folder / "docs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
