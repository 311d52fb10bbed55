"""Commands with random arguments end with a known exit code, and with clear lines when it is not 0."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import typer
from hypothesis import strategies as st
from typer.core import TyperCommand, TyperGroup

from parquetry.serving.cli.commands import application
from parquetry.serving.cli.main import run
from tests.fuzz.fuzzing import TIMEOUT, fuzz
from tests.terminal_signs import obeyed
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]

CODES = range(6)
LONGEST_LINE = 2000
ENDLESS = {"watch", "serve"}
"""commands that run until they are stopped"""
VALUES = (
    *("", " ", "-", "--", "0", "1", "-1", "3", "9" * 400, "1e999", "nan", "0x10", "1.5", "true", "'", '"', "\\"),
    *("\0", "a\0b", "\udcff", "a\udc80b", "\x1b[2J\x07", "\x9b2J", "\u202e", "\n", "a\nb", "\u2028", "🎉", "é"),
    *("~nobody-here", "~", ".", "..", "/dev/null", "/dev/zero", "/proc/self/mem", "docs", "docs/oak.txt"),
    *("queries.txt", "nowhere.txt", "corpus", "other", "a" * 5000, "a/" * 3000, "a/" * 1000, "[", "(", "(a+)+$", "*"),
    *("**/*", "%", "%s", "{}", "[[]]", '{"a": 1}', "2026-01-01", "2026-13-45", "0000-00-00", "9999-12-31T23:59:60Z"),
    *("text", "vector", "hybrid", "documents", "entries", "json", "public", "individual", "ada", "acme", "docs"),
    *("oak table", "leave", "'; DROP TABLE documents; --", "SELECT 1", "SELECT * FROM documents", "SELECT", "1 = 1"),
    *("WITH RECURSIVE", "path = 'oak.txt'", "path LIKE '%'", "tags = 1 OR", "x = ("),
    *("file://", "file:///dev/zero", "http://", "http://[", "http://127.0.0.1:9/", "ftp://a", "s3://", "az://x"),
)  # fmt: skip
TEXTS = {
    "oak.txt": "The oak table has four legs.",
    "leave.md": "# Leave\n\nThirty days.\n",
    "broken.docx": b"PK\x03\x04",
}
SETTINGS = """
[corpus]
root = "corpus"
[extraction]
workers = 1
[refresh]
attempts = 1
[llm]
model = "m"
base_url = "http://127.0.0.1:9/v1"
attempts = 1
[[source]]
name = "docs"
uri = "docs"
[[source]]
name = "chats"
uri = "chats"
content = "sessions"
user_id = "ada"
visibility = "individual"
"""


def commands(group: TyperGroup, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, (*before, name))
        elif name not in ENDLESS:
            yield (*before, name), command


def lines() -> st.SearchStrategy[list[str]]:
    """Return command lines: a command with its options and values, some of which belong to another option."""
    root = typer.main.get_command(application())
    assert isinstance(root, TyperGroup)
    value = st.sampled_from(VALUES) | st.text(max_size=20)
    each = []
    for words, command in commands(root):
        options = [(name, getattr(option, "is_flag", False)) for option in command.params for name in option.opts]
        named = [(name, flag) for name, flag in options if name.startswith("--")]
        option = st.sampled_from([*named, ("--no-such-option", False)])
        given = st.tuples(option, value).map(lambda each: [each[0][0]] if each[0][1] else [each[0][0], each[1]])
        # Without a Prefect server, which takes seconds to start.
        direct = [["--direct"]] if ("--direct", True) in named else []
        parts = st.lists(given | value.map(lambda each: [each]), max_size=3)
        each.append(parts.map(lambda parts, words=words, direct=direct: [*words, *chain(*direct, *parts)]))
    return st.one_of(each)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with settings, a source and its corpus."""
    workshop = Workshop(tmp_path_factory.mktemp("fuzzed") / "desk")
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    (workshop.root / "chats").mkdir()
    (workshop.root / "parquetry.toml").write_text(SETTINGS)
    (workshop.root / "queries.txt").write_text("oak table\nleave\n")
    return workshop.root


def test_any_command_line_ends_with_an_exit_code_and_clear_lines(made, tmp_path, monkeypatch, capsys):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    desk = tmp_path / "desk"
    whole = _looks(made)

    def check(arguments: list[str]) -> str:
        if not desk.exists() or _looks(desk) != whole:
            monkeypatch.chdir(tmp_path)
            shutil.rmtree(desk, ignore_errors=True)
            shutil.copytree(made, desk)
        monkeypatch.chdir(desk)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"oak table\n")))
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        assert code in CODES, (code, said.err)
        assert not obeyed(said.out + said.err, allowed="\n\t"), (said.out, said.err)
        assert "Traceback" not in said.err
        assert max(map(len, said.err.splitlines()), default=0) < LONGEST_LINE, said.err
        if code:
            # A run that writes a report lists its failures there.
            assert (said.err + said.out).strip(), code
        return f"{arguments[0]} {code}"

    # Few lines at random are right, and a busy machine tries fewer.
    assert [check(["search", "oak table"]), check(["documents"])] == ["search 0", "documents 0"]
    seen = fuzz(lines(), check, share=0.2)
    assert {"search 2", "sql 2"} <= {*seen}


def _looks(folder: Path) -> list[tuple[str, int, float]]:
    """Return names, sizes and modification times of all files, to detect changes by a command."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return [(str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime) for file in files]
