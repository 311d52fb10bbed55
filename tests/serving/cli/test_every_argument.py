"""Every argument of every command with invalid values: one line, the right exit code, bounded work."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from parquetry.errors import ParquetryError
from parquetry.serving.cli.commands import application
from tests.serving.conftest import Desk
from tests.serving.program import PROGRAM
from tests.terminal_signs import obeyed

pytestmark = pytest.mark.slow

NO_UTF8, NUL = os.fsdecode(b"caf\xe9\xff"), "a\0b"
NUMBERS = ["x", "", "1e400", "nan", "-9999999999999999999999", "9" * 30, "9" * 5000, "1.5.1", NO_UTF8, NUL, "\x1b[2J"]
REFUSED = {
    int: [*NUMBERS, "-1"],
    float: NUMBERS,
    str: [NO_UTF8, NUL],
    Path: [NO_UTF8, NUL, "~nobody-of-this-name/x/y"],
}
"""values invalid for any argument of a type"""
NO_COUNT = {"version"}
"""numbers without a fixed maximum: the corpus determines it"""
HOMES = {"corpus", "folder", "target", "targets"}
NEEDED = {
    "search": {"query": "oak"},
    "add": {"text": "oak"},
    "chunks": {"document": "oak.txt"},
    "show": {"document": "oak.txt"},
    "undo": {"decision": "d"},
    "export": {"folder": "shared", "public": True},
    "import": {"files": "docs", "embedder": "wordllama"},
    "restore": {"version": "1"},
    "remove": {"documents": "oak.txt"},
    "forget": {"user": "nobody", "yes": True},
    "namespaces delete": {"name": "default"},
    "token create": {"name": "app"},
    "token revoke": {"token": "no such id"},
    "reindex": {"documents": "oak.txt", "direct": True},
    "refresh": {"direct": True},
    "sessions refresh": {"direct": True},
}
"""arguments that a command needs besides the invalid one"""
INSTEAD = {"queries": "query", "targets": "text"}
"""arguments that replace others"""


def commands(group, above=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")
        yield f"{above}{name}", command


ENDLESS = {"watch", "serve", "mcp"}
"""commands that run until they are stopped, unless an argument is wrong"""
COMMANDS = dict(commands(get_command(application())))


def parameters():
    for name, command in COMMANDS.items():
        for parameter in command.params:
            annotation = parameter.type_descriptor.annotation
            kind = annotation.__args__[0] if getattr(annotation, "__origin__", None) is list else annotation
            yield name, parameter, kind


def arguments(name, parameter, value):
    """Return the command with one invalid argument and all that it needs."""
    command, given = COMMANDS[name], [*name.split()]
    rest = []
    for each in command.params:
        wanted = value if each.name == parameter.name else NEEDED.get(name, {}).get(each.name)
        if wanted is None or each.name == INSTEAD.get(parameter.name):
            continue
        option = each.opts[0] if each.opts[0].startswith("-") else None
        if option is None:
            rest.append(wanted)
        elif wanted is True:
            given.append(option)
        else:
            given.append(f"{option}={wanted}" if option.startswith("--") else f"{option}{wanted}")
    return [*given, "--", *rest] if rest else given


WRONG = [
    pytest.param(name, parameter, value, id=f"{name}-{parameter.name}-{number}")
    for name, parameter, kind in parameters()
    for number, value in enumerate(REFUSED.get(kind, ()))
    # A file may have this name.
    if not (value == NO_UTF8 and name == "init")
]


@pytest.fixture(scope="module")
def place(refreshed, tmp_path_factory):
    """Create a corpus that no refused command changes."""
    folder = tmp_path_factory.mktemp("arguments") / "desk"
    shutil.copytree(refreshed, folder)
    return folder


@pytest.fixture
def tried(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    return Desk(place, capsys)


@pytest.mark.parametrize(("name", "parameter", "value"), WRONG)
def test_a_wrong_argument_is_one_line_with_exit_code_2(tried, name, parameter, value):
    told = tried(*arguments(name, parameter, value))
    assert (told.code, told.stdout) == (2, "")
    assert told.complaint
    assert not obeyed(told.stderr, allowed="\n")
    assert "Traceback" not in told.stderr
    assert not (tried.folder / "shared").exists()


LONG = ["x" * 3000, "xy/" * 300, "x y'" * 800]


@pytest.mark.parametrize("value", LONG, ids=["name", "path", "words"])
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        pytest.param(name, parameter, id=f"{name}-{parameter.name}")
        for name, parameter, kind in parameters()
        if kind in (int, float, str, Path) and name not in ENDLESS
    ],
)
def test_a_message_repeats_no_more_of_an_argument_than_a_person_reads(tried, name, parameter, value):
    told = tried(*arguments(name, parameter, value))
    if told.code:
        assert told.code in (2, 3)
        assert told.stderr.count("\n") == 1
        assert len(told.stderr) < 700


def test_long_names_that_are_known_are_told_in_short(tried):
    """Earlier tests may have added any names to the corpus."""
    assert tried("refresh", "docs", "--namespace", "z" * 3000, "--direct").code == 0
    told = tried("documents", "--namespace", "z" * 2000)
    assert told.code == 2
    assert len(told.stderr) < 900


def test_what_is_left_out_of_a_long_argument_is_told(tried):
    assert tried("y" * 3000).complaint == (
        f"No such command '{'y' * 40}… (2,920 more characters) …{'y' * 40}' (see `parquetry --help`)"
    )
    told = tried("search", "oak", f"--mode={'y' * 3000}").complaint
    assert f"'{'y' * 40}… (2,920 more characters) …{'y' * 40}' is not one of" in told


def test_a_file_in_the_place_of_the_corpus_is_told(tried):
    (tried.folder / "note").touch()
    for name, parameter, _ in parameters():
        if parameter.name == "corpus" and not name.startswith("sessions"):
            given = arguments(name, parameter, "note")
            told = tried(*given, *([] if "--" in given or name not in ("plan", "refresh", "watch") else ["docs"]))
            assert (told.code, told.stdout) == (2, ""), name
            assert "note is a file, and a corpus is a folder; name one with --corpus" in told.complaint, name
    for beside in (["doctor", "--fix", "--corpus", "note"], ["add", "--text", "x", "--corpus", "note/below"]):
        assert "note is a file, and a corpus is a folder" in tried(*beside).complaint


def test_every_kind_of_argument_is_tried():
    kinds = {kind for _, _, kind in parameters()}
    assert set(REFUSED) <= kinds
    assert len(WRONG) > 150


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        pytest.param(name, parameter, id=f"{name}-{parameter.name}")
        for name, parameter, kind in parameters()
        if kind in (int, float) and parameter.name not in NO_COUNT
    ],
)
def test_every_count_has_a_maximum_that_help_shows(desk, name, parameter):
    assert parameter.max is not None
    assert parameter.min is not None
    helped = " ".join(desk(*name.split(), "--help").stdout.split())
    assert f"{parameter.min}<=x<={parameter.max}" in helped
    told = desk(*arguments(name, parameter, f"{parameter.max + 1}"))
    assert (told.code, told.complaint.count(str(parameter.max))) == (2, 1)


@pytest.mark.parametrize("home", sorted(HOMES))
def test_the_home_of_nobody_is_told(desk, home):
    for name, parameter, _ in parameters():
        # Session commands look for their sources first.
        if parameter.name == home and not (home == "corpus" and name.startswith("sessions")):
            told = desk(*arguments(name, parameter, "~nobody-of-this-name"))
            assert told.code == 2, name
            assert "~nobody-of-this-name is the home of no user here" in told.complaint


@pytest.mark.parametrize("value", ["http://[", "file://[x/y", "s3://[a"])
@pytest.mark.parametrize("wrong", ["corpus", "target", "targets"])
def test_what_is_no_url_is_told(tried, wrong, value):
    for name, parameter, _ in parameters():
        if parameter.name == wrong:
            told = tried(*arguments(name, parameter, value))
            assert (told.code, told.stdout) == (2, ""), name
            assert "is not a URL" in told.complaint


def started(program, *arguments, **options):
    """Run the program in a separate process."""
    code = program.format(path=[*filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False, **options
    )


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); " + PROGRAM


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(("plan", "--config", "/dev/zero"), "has more than 4194304 bytes", id="endless-settings"),
        pytest.param(("plan", "--config", "pipe"), "no source is configured", id="settings-from-a-pipe"),
        pytest.param(("plan", "--config", "docs"), "docs cannot be read: is a folder", id="folder-as-settings"),
        pytest.param(("plan", "--config", "large.toml"), "has more than 4194304 bytes", id="large-settings"),
        pytest.param(("plan", "--config", "deep.toml"), "nested deeper than 100 levels", id="deep-settings"),
        pytest.param(("plan", "--config", "keys.toml"), "nested deeper than 100 levels", id="deep-keys"),
        pytest.param(("plan", "--config", "long.toml"), "is not valid TOML", id="long-number-in-settings"),
        pytest.param(("init", "/dev/zero"), "has more than 4194304 bytes", id="settings-over-a-device"),
        pytest.param(("search", "--queries", "/dev/zero"), "has more than 67108864 bytes", id="endless-queries"),
        pytest.param(("search", "--queries", "pipe"), "there is no query in pipe", id="queries-from-a-pipe"),
        pytest.param(("search", "--queries", "docs"), "is a folder", id="folder-as-queries"),
        pytest.param(("search", "--queries", "deep.jsonl"), "deep.jsonl, line 1", id="deep-query"),
        pytest.param(("search", "--queries", "k.jsonl"), "k: Input should be less than or equal", id="k-of-a-query"),
        pytest.param(("eval", "zeros"), "corpus.jsonl cannot be read: is not a file", id="endless-collection"),
        pytest.param(("eval", "pipes"), "corpus.jsonl cannot be read: is not a file", id="collection-of-pipes"),
        pytest.param(("eval", "/dev/zero"), "is not a folder", id="device-as-collection"),
        pytest.param(("refresh", "--direct", "/dev/zero"), "is not a folder", id="device-as-target"),
        pytest.param(("refresh", "--direct", "pipe"), "is not a folder", id="pipe-as-target"),
        pytest.param(("add", "pipe"), "is not a file", id="pipe-to-add"),
        pytest.param(("search", "oak", "--context", "10000000"), "less than or equal to 1000", id="context"),
        pytest.param(("search", "oak", "-k", "10000000000"), "less than or equal to 10000", id="results"),
    ],
)
def test_what_has_no_end_or_no_bottom_is_one_line_in_little_memory(desk, arguments, problem):
    (desk.folder / "large.toml").touch()
    os.truncate(desk.folder / "large.toml", 100_000_000)
    deep = "[" * 30_000 + "]" * 30_000
    (desk.folder / "deep.toml").write_text(f'[[source]]\nname = "a"\nuri = "docs"\noptions.a = {deep}')
    (desk.folder / "keys.toml").write_text(f"{'a.' * 30_000}a = 1")
    (desk.folder / "long.toml").write_text(f"[chunking]\nsize = {'9' * 5000}")
    (desk.folder / "deep.jsonl").write_text('{"query": ' + "[" * 30_000)
    (desk.folder / "k.jsonl").write_text('{"query": "oak", "k": 10000000000}')
    os.mkfifo(desk.folder / "pipe")
    for folder in ("zeros", "pipes"):
        (desk.folder / folder).mkdir()
    (desk.folder / "zeros" / "corpus.jsonl").symlink_to("/dev/zero")
    os.mkfifo(desk.folder / "pipes" / "corpus.jsonl")
    done = started(LIMITED, *arguments, cwd=desk.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("parquetry: ")
    assert done.stderr.count("\n") == 1
    assert problem in done.stderr


def test_context_as_large_as_it_may_be_costs_what_the_document_has(desk):
    whole = desk("search", "leave", "--context", "1000", "--mode", "text", "--json").json
    assert len(whole["passages"]) == 2


def test_endless_standard_input_is_refused(desk):
    (desk.folder / "small.toml").write_text('[corpus]\nroot = "corpus"\n[extraction]\nmax_bytes = 1000\n')
    with Path("/dev/zero").open("rb") as zeros:
        done = started(PROGRAM, "add", "-", "--config", "small.toml", cwd=desk.folder, stdin=zeros)
    assert (done.returncode, done.stderr) == (
        2,
        "parquetry: standard input is larger than extraction.max_bytes (1000)\n",
    )


def test_errors_that_are_raised_have_one_line_each():
    def below(kind):
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    several = [each.__name__ for each in below(ParquetryError) if "lines" in vars(each)]
    assert several == ["WrongSettings"]
