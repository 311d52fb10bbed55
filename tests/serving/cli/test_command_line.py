"""The command line itself: its help, completion, and what it says to names that it does not know."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from parquetry.serving.cli.commands import PLACES, application
from parquetry.serving.cli.main import run
from tests.serving.program import command, start


def commands(group, path=()):
    """Every command with its words after the program's name."""
    yield path, group
    for name, each in getattr(group, "commands", {}).items():
        yield from commands(each, (*path, name))


ALL = dict(commands(get_command(application())))


@pytest.fixture
def help_of(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def read(*path, option="--help"):
        capsys.readouterr()
        assert run([*path, option]) == 0
        return capsys.readouterr().out

    return read


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "parquetry")
def test_help_is_printed_as_it_is_written_in_80_columns(help_of, path):
    """Words in brackets were taken for markup: "list the sources by ."."""
    shown = help_of(*path)
    assert max(map(len, shown.splitlines())) <= 80
    # Lines break after hyphens.
    words = " ".join(shown.split()).replace("- ", "-")
    assert " ".join((ALL[path].help or "").split()).replace("- ", "-") in words
    for option in (each for each in ALL[path].params if not getattr(each, "hidden", False)):
        assert " ".join(option.help.split()).replace("- ", "-") in words
    assert help_of(*path, option="-h") == shown


def test_commands_are_listed_by_what_they_are_for_and_no_line_is_cut(help_of):
    listed = help_of().partition("\nRun:\n")[2]
    assert re.findall(r"^\w+:$", listed, re.MULTILINE) == ["Ask:", "Look:", "Repair:"]
    assert re.findall(r"^  (\w+) ", listed, re.MULTILINE) == list(PLACES)
    assert "..." not in listed


def test_no_other_command_is_imported():
    """One command needs half of what all need."""
    code = (
        "import sys; from parquetry.serving.cli.main import run; run(['init', '--help']); "
        "assert 'parquetry.serving.cli.run_commands' in sys.modules; "
        "sys.exit(' '.join({'parquetry.serving.cli.search_command', 'duckdb', 'numpy', 'prefect'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split() == []


def test_search_imports_nothing_that_only_other_searches_need(tmp_path):
    code = (
        "import os, sys; from parquetry.serving.cli.main import run; run(['search', 'x', '--corpus', 'none']); "
        "assert 'parquetry.serving.search.service' in sys.modules; "
        "assert 'PYDANTIC_DISABLE_PLUGINS' not in os.environ; "
        "print(*{'psutil', 'filelock', 'pyarrow', 'openai', 'parquetry.embed.openai', "
        "'parquetry.rerank.llm', 'parquetry.rerank.service', 'parquetry.planning.report', 'prefect', 'fastapi'} "
        "& set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (found.returncode, found.stdout.split()) == (0, []), found.stderr


@pytest.mark.slow
def test_a_refresh_that_finds_nothing_new_imports_nothing_that_only_new_documents_need(tmp_path):
    """Most refreshes find nothing new, and imports are most of what they take. Extractors are for other processes."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "oak.txt").write_text("The oak table is sold.")
    code = (
        "import gc, sys; from parquetry.serving.cli.main import run; "
        "code = run(['refresh', '--direct', 'docs', '--corpus', 'kb', '--json']); assert gc.isenabled(); "
        "print(code, *{'pandas', 'fsspec', 'tokenizers', 'prefect', *NEW} & set(sys.modules))"
    )
    # What reads documents, calls services, or is of sessions.
    of_new = "multiprocessing.forkserver tenacity asyncio parquetry.extract.text parquetry.extract.layout "
    of_new += "parquetry.chunking.chunker parquetry.tasks.documents.batch parquetry.tasks.engine.workers "
    of_new += "parquetry.tasks.batches.lane parquetry.llm.client parquetry.llm.batch_api parquetry.sessions.model "
    of_new += "parquetry.sources.archive.file"
    code = f"NEW = {of_new.split()!r}; {code}"
    lines = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert [json.loads(report)["documents"]["unchanged"] for report, _ in lines] == [0, 1]
    assert lines[1][1] == "0"
    imported = lines[0][1].split()
    assert "multiprocessing.forkserver" in imported
    assert [each for each in imported if each.startswith(("parquetry.extract.", "parquetry.chunking."))] == []


def test_a_plan_loads_no_model(tmp_path):
    (tmp_path / "oak.txt").write_text("The oak table is sold.")
    code = (
        "import sys; from parquetry.serving.cli.main import run; "
        "print(run(['plan', 'oak.txt', '--corpus', 'kb']), *{'pandas', 'tokenizers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.splitlines()[-1] == "0", found.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("query", "parquetry search"),
        ("ask", "parquetry search"),
        ("find", "parquetry search"),
        ("list", "parquetry documents"),
        ("ls", "parquetry documents"),
        ("delete", "parquetry remove"),
        ("rm", "parquetry remove"),
        ("ingest", "parquetry refresh"),
        ("index", "parquetry refresh"),
        ("sync", "parquetry refresh"),
        ("update", "parquetry refresh"),
        ("server", "parquetry serve"),
        ("Search", "parquetry search"),
        ("serach", "parquetry search"),
        ("documnets", "parquetry documents"),
        ("namespaces rm", "parquetry namespaces delete"),
        ("sessions plna", "parquetry sessions plan"),
    ],
)
def test_names_of_other_tools_and_misspelt_ones_lead_to_the_command(capsys, typed, meant):
    assert run(typed.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    group = "parquetry" if " " not in typed else f"parquetry {typed.split()[0]}"
    name = typed.split()[-1]
    assert said.err == f"parquetry: No such command {name!r}; did you mean `{meant}`? (see `{group} --help`)\n"


def test_unlike_name_is_no_suggestion(capsys):
    assert run(["frobnicate"]) == 2
    assert capsys.readouterr().err == "parquetry: No such command 'frobnicate' (see `parquetry --help`)\n"


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("search x --top-k 3", "No such option: --top-k; did you mean -k?"),
        ("search x --filenam a", "No such option: --filenam; did you mean --filename?"),
        ("refresh --dirct", "No such option: --dirct; did you mean --direct"),
        ("history --zzz", "No such option: --zzz (see"),
        ("doctor -z", "No such option: -z (see"),
    ],
)
def test_unknown_option_leads_to_the_nearest_one(capsys, typed, problem):
    assert run(typed.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"parquetry: {problem}")


def complete(shell, **variables):
    environment = {**os.environ, "_PARQUETRY_COMPLETE": f"complete_{shell}", **variables}
    done = start(env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "variables", "expected"),
    [
        ("bash", {"COMP_WORDS": "parquetry sea", "COMP_CWORD": "1"}, ["search"]),
        ("bash", {"COMP_WORDS": "parquetry namespaces de", "COMP_CWORD": "2"}, ["delete"]),
        ("bash", {"COMP_WORDS": "parquetry search --mod", "COMP_CWORD": "2"}, ["--mode"]),
        ("bash", {"COMP_WORDS": "parquetry search --mode he", "COMP_CWORD": "3"}, []),
        ("bash", {"COMP_WORDS": "parquetry search --mode hy", "COMP_CWORD": "3"}, ["hybrid"]),
    ],
)
def test_names_are_completed_in_bash(shell, variables, expected):
    assert complete(shell, **variables).split() == expected


def test_names_are_completed_in_zsh_and_fish():
    typed = {"_TYPER_COMPLETE_ARGS": "parquetry refr"}
    assert '"refresh"' in complete("zsh", **typed)
    assert complete("fish", **typed, _TYPER_COMPLETE_FISH_ACTION="get-args").startswith("refresh\t")


def test_completion_script_works_in_a_real_bash(tmp_path):
    program = tmp_path / "parquetry"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(parquetry --show-completion)"
        COMP_WORDS=(parquetry docu) COMP_CWORD=1
        _parquetry_completion parquetry
        echo "${COMPREPLY[@]}"
        complete -p parquetry
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "documents\ncomplete -o default -F _parquetry_completion parquetry\n", done.stderr


def test_former_spellings_of_options_are_understood_and_not_shown(help_of, capsys):
    for given in (["search", "--what", "entires", "x"], ["search", "--what=entires", "x"]):
        assert run(given) == 2
        assert "'--type': 'entires' is not one of" in capsys.readouterr().err
    assert run(["sessions", "plan", "--widest", "all"]) == 2
    assert "'--max-visibility': 'all' is not one of" in capsys.readouterr().err
    assert "--what" not in help_of("search")
    assert "--widest" not in help_of("sessions", "refresh")
    # Only of commands that have them, and only options.
    assert run(["documents", "--what", "x"]) == 2
    assert "No such option: --what" in capsys.readouterr().err
