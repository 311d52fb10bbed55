"""The code in the documentation runs as it stands."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from parquetry.storage.connect import connect
from tests.documentation import OWN_RULES, PAGES, ROOT, blocks_of

pytestmark = pytest.mark.slow

COVERED = {*OWN_RULES, "docs/settings.md", "docs/openai-conformance.md"}
"""pages that other tests cover"""
RUN = [page for page in PAGES if page not in COVERED]
MAY_BE_EMPTY = "No rows if"
"""phrase in the paragraph before a query that finds faults or coincidences"""


@pytest.mark.parametrize(
    "page", [page for page in RUN if any(block.language in ("sh", "python") for block in blocks_of(page))]
)
def test_shell_and_python_of_a_page_run_in_order(page, copy):
    """They build on each other, as for a reader who follows the page."""
    for block in blocks_of(page):
        if block.language not in ("sh", "python") or block.exempt:
            continue
        for done in copy.shell(block.code) if block.language == "sh" else [copy.python(block.code)]:
            assert (done.code, done.stderr) == (0, ""), block.name
            assert done.stdout or "--script" in block.code, block.name


@pytest.mark.parametrize(
    "block",
    # The SQL recipes need a separate corpus and run in three ways.
    [block for page in RUN if page != "docs/sql.md" for block in blocks_of(page) if block.language == "sql"],
    ids=lambda block: block.name,
)
def test_query_gives_rows(block, original):
    corpus = connect(str(original.folder / ".demo" / "corpus"))
    rows = corpus.execute(block.code).fetchall()
    before = (ROOT / block.page).read_text("utf-8").partition(block.code)[0].rpartition("```sql")[0]
    assert rows or MAY_BE_EMPTY in before.rstrip().rpartition("\n\n")[2]


def test_every_citation_of_the_handbook_is_exact(original):
    """The guide makes this claim next to its query."""
    (code,) = [block.code for block in blocks_of("docs/analysts.md") if "AS exact" in block.code]
    ((chunks, exact),) = connect(str(original.folder / ".demo" / "corpus")).execute(code).fetchall()
    assert chunks == exact > 0


# --- the output in the README


def _shown():
    """Return command -> its output, for every command of the README's console blocks, in order."""
    code = "\n".join(block.code for block in blocks_of("README.md") if block.language == "console")
    parts = re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def _lines(output):
    """Remove the differences between runs."""
    output = re.sub(r"\d+\.\d+ s\b", "0.0 s", output)
    return re.sub(r"file://\S*?/examples/", "file:///examples/", output).strip().splitlines()


def _assert_shows(shown, real):
    """Compare two outputs; `[...]` in the first stands for any lines of the second."""
    place = 0
    for number, part in enumerate(re.split(r"^ *\[\.\.\.\]$", "\n".join(shown), flags=re.MULTILINE)):
        lines = part.strip("\n").splitlines()
        starts = [place] if number == 0 else range(place, len(real) - len(lines) + 1)
        place = next((start + len(lines) for start in starts if real[start : start + len(lines)] == lines), -1)
        assert place >= 0, f"{lines} is not in {real}"
    assert not shown[-1:] or shown[-1].strip() == "[...]" or place == len(real)


def test_readme_shows_what_the_demo_does():
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    done = [f"parquetry {' '.join(arguments)}" for _, arguments in demo["STEPS"]]
    shown = [command.replace('"', "") for command, _ in _shown()]
    begin, end = shown.index("make demo") + 1, len(shown) - 1
    assert [command for command in done if command in shown[begin:end]] == shown[begin:end]
    assert len(shown[begin:end]) == 3


def test_demo_shows_its_steps_with_seconds_and_commands_that_work(copy):
    """The corpus is there, so the refresh finds everything unchanged; the commands after it are run as they stand."""
    (copy.folder / ".venv" / "bin").mkdir(parents=True)
    (copy.folder / ".venv" / "bin" / "parquetry").symlink_to(Path(sys.executable).parent / "parquetry")
    done = copy.run([sys.executable, "examples/demo.py"])
    assert (done.code, done.stderr) == (0, "")
    steps = re.findall(
        r"^\[(\d)/(\d)\] \w+: .+\n\$ parquetry (?:.+\n)+?(?:.*\n)*?\(\d+\.\d s\)$", done.stdout, re.MULTILINE
    )
    assert steps == [(str(number), "5") for number in range(1, 6)]
    tail = done.stdout.partition("Try next:\n")[2]
    commands = [line.strip() for line in tail.splitlines() if line.strip()]
    assert len(commands) == 4
    for command in commands:
        (result,) = copy.shell(command)
        assert (result.code, result.stderr) == (0, ""), command
        assert result.stdout


def test_readme_shows_real_output(original):
    """The README shows a refresh as a flow run; a direct one prints the same. The first refresh is the fixture's."""
    shown = [(command, output) for command, output in _shown() if command.startswith("parquetry")]
    assert len(shown) == 4
    for number, (command, output) in enumerate(shown):
        if number == 0:
            real = original.refreshed
        else:
            (done,) = original.shell(command.replace(" refresh ", " refresh --direct "))
            assert (done.code, done.stderr) == (0, "")
            real = done.stdout
        _assert_shows(_lines(output), _lines(real))
