"""A watched folder is refreshed when something in it changes, until the command is stopped."""

import json
import queue
import signal
import subprocess
import threading
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from parquetry.serving.cli.watch_command import _watched
from parquetry.serving.jobs.watching import Watched
from parquetry.settings.sections import parse_settings
from parquetry.sources.registry import scopes_of
from parquetry.sources.selection import Selection
from tests.serving.program import command, start

pytestmark = pytest.mark.slow

SETTINGS = """
[corpus]
root = "corpus"
[extraction]
workers = 1
[[source]]
name = "docs"
uri = "docs"
exclude = ["drafts/"]
"""


class Watching:
    """The running command, and the lines that it prints."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            command("watch"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line(self):
        """Return the next line that it prints."""
        return self._lines.get(timeout=120)

    def line_with(self, words):
        """Return the next line that contains the given words."""
        while words not in (line := self.line()):
            pass
        return line

    def stop(self, number):
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "oak.txt").write_text("Oak is hard.")
    (tmp_path / "parquetry.toml").write_text(SETTINGS)
    return tmp_path


@pytest.fixture
def watching(folder):
    running = Watching(folder)
    yield running
    running.close()


def test_changes_are_refreshed_in_a_line_each_and_ctrl_c_ends_it(folder, watching):
    docs = folder / "docs"
    assert watching.line() == f"Watching {docs} (docs)."
    assert "1 added in " in watching.line()

    (docs / "ash.txt").write_text("Ash is light.")
    assert "1 added in " in watching.line()

    # Excluded files are ignored: the next line reports the next change.
    (docs / "drafts").mkdir()
    (docs / "drafts" / "x.txt").write_text("not yet")
    (docs / "oak.txt").rename(docs / "oak-2.txt")
    assert "1 moved in " in watching.line()

    (docs / ".parquetry.toml").write_text('tags = ["timber"]')
    assert "2 permissions in " in watching.line()

    (docs / "bad.docx").write_bytes(b"PK\x03\x04 no document")
    assert "1 not indexed in " in watching.line()
    assert "bad.docx: damaged" in watching.line()

    docs.rename(folder / "away")
    assert "does not exist" in watching.line()
    docs.mkdir()
    (docs / "elm.txt").write_text("Elm is rare.")
    assert "1 added, 3 removed in " in watching.line_with(" added")
    assert watching.stop(signal.SIGINT) == 0


def test_documents_that_are_kept_are_a_line(folder):
    box = folder / "docs" / "box.zip"
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("a.md", "# a\n\nIn the box.\n")
        archive.writestr("b.md", "# b\n\nIn the box.\n")
    watching = Watching(folder)
    try:
        assert "3 added in " in watching.line_with(" added")
        box.write_bytes(b"cut")
        assert "kept: 2 documents below docs/box.zip were kept: cannot be opened: " in watching.line_with("kept: ")
    finally:
        watching.close()


def test_what_a_stranger_puts_into_the_folder_fails_alone_and_the_watch_goes_on(folder):
    """A page of 288 bytes hung the watching process itself, and no file beside it was published."""
    settings = folder / "parquetry.toml"
    settings.write_text(
        settings.read_text().replace("workers = 1", "workers = 1\ntimeout_seconds = 2\nmemory_mb = 1024")
    )
    levels = "".join(f"{after}: &{after} [{', '.join([f'*{each}'] * 9)}]\n" for each, after in pairwise("abcdefghij"))
    bomb = f"a: &a [x, x, x, x, x, x, x, x, x]\n{levels}"
    hostile = {
        "comments.html": "<!---->" * 40,
        "comments": "<!---->" * 40,
        "bomb.yaml": bomb,
        "bomb.md": f"---\n{bomb}---\nBeside a bomb.\n",
        "deep.json": "[" * 100_000,
        "long.csv": "a,b\n" * 1_200_000,
        "large.json": f"[{'1,' * 8_000_000}1]",
    }
    watching = Watching(folder)
    try:
        assert "1 added in " in watching.line_with(" added")
        for name, content in hostile.items():
            (folder / "docs" / name).write_text(content)
        (folder / "docs" / "ash.txt").write_text("Ash is light.")
        # A refresh that begins before all are written leaves the others to the next one.
        refused = {}
        for _ in range(len(hostile)):
            if {"comments.html", "deep.json", "long.csv", "large.json"} <= refused.keys():
                break
            line = watching.line_with("docs/")
            refused[line.split(": ")[0].rpartition("/")[2]] = line.split(": ")[1]
        assert refused.pop("large.json") in ("memory", "timeout")
        assert refused == {"comments.html": "no-text", "deep.json": "too-deep", "long.csv": "timeout"}
        (folder / "docs" / "elm.txt").write_text("Elm is rare.")
        assert " 1 added" in watching.line_with(" added")
        assert watching.stop(signal.SIGINT) == 0
    finally:
        watching.close()
    listed = start("documents", "--status", "indexed", "--json", cwd=folder)
    paths = {each["path"] for each in json.loads(listed.stdout)["documents"]}
    assert {"oak.txt", "ash.txt", "elm.txt", "bomb.md"} <= paths


def test_service_that_is_stopped_ends_like_ctrl_c(watching):
    watching.line()
    watching.line()
    assert watching.stop(signal.SIGTERM) == 0
    assert watching.line() == "Stopped."


def test_remote_source_is_refused_by_name_and_left_out_by_default(desk):
    settings = desk.folder / "parquetry.toml"
    remote = settings.read_text().replace('uri = "docs"', 'uri = "s3://box"')
    settings.write_text(remote)
    for arguments in (["watch", "docs"], ["watch"], ["watch", "s3://box/deep"]):
        told = desk(*arguments)
        assert told.code == 2
        assert "only local folders can be watched, and docs is none" in told.complaint


def test_nothing_to_watch_is_told(desk):
    assert "nowhere is neither a folder" in desk("watch", "nowhere").complaint


@pytest.mark.parametrize(
    ("path", "concerned"),
    [
        ("a.md", True),
        ("sub/a.md", True),
        ("sub", True),
        ("", True),
        (".parquetry.toml", True),
        ("sub/.parquetry.toml", True),
        (".git/index", False),
        ("a.md~", False),
        ("drafts/a.md", False),
        ("drafts/.parquetry.toml", False),
        ("corpus/documents/x.parquet", False),
        ("corpus-added/x.md", True),
        ("../elsewhere.md", False),
    ],
)
def test_change_concerns_a_source_or_not(tmp_path, path, concerned):
    settings = parse_settings({"source": [{"name": "docs", "uri": str(tmp_path), "include": ["*.md"]}]}, "test")
    (scope,) = scopes_of(settings, ())
    watched = Watched(scope, tmp_path, Selection((), ["drafts/"]), (tmp_path / "corpus",))
    assert watched.concerns(str(Path(tmp_path / path).absolute()) if ".." not in path else "/elsewhere.md") is concerned


@pytest.mark.parametrize(
    ("path", "concerned"),
    [("a.md", True), (".parquetry.toml", True), ("b.md", False), ("a.md.new", False), ("x/a.md", False)],
)
def test_file_that_is_a_source_is_watched_by_its_folder(tmp_path, path, concerned):
    (tmp_path / "a.md").write_text("x")
    settings = parse_settings({"source": [{"name": "one", "uri": str(tmp_path / "a.md")}]}, "test")
    (watched,) = _watched(settings, (), None)
    assert watched.root == tmp_path
    assert watched.concerns(str(tmp_path / path)) is concerned


def test_change_of_what_belongs_to_an_inner_source_does_not_concern_the_outer_one(tmp_path):
    (tmp_path / "sub").mkdir()
    tables = [{"name": "docs", "uri": str(tmp_path)}, {"name": "sub", "uri": str(tmp_path / "sub")}]
    outer, inner = _watched(parse_settings({"source": tables}, "test"), (), None)
    changed = str(tmp_path / "sub" / "a.md")
    assert (outer.concerns(changed), inner.concerns(changed)) == (False, True)


@pytest.mark.parametrize(
    ("path", "concerned"), [("sub/a.md", True), ("sub", True), ("", True), ("other/a.md", False), ("subway", False)]
)
def test_change_outside_of_the_watched_part_does_not_concern_it(tmp_path, path, concerned):
    (tmp_path / "sub").mkdir()
    settings = parse_settings({"source": [{"name": "docs", "uri": str(tmp_path)}]}, "test")
    (scope,) = scopes_of(settings, (str(tmp_path / "sub"),))
    assert Watched(scope, tmp_path, Selection()).concerns(str(tmp_path / path)) is concerned
