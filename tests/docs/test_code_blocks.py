"""The code in the documentation runs as it stands."""

import re
import runpy

import pytest

from parquetry.storage.connect import connect
from tests.documentation import OWN_RULES, PAGES, ROOT, blocks_of

pytestmark = pytest.mark.slow

RUN = [page for page in PAGES if page not in OWN_RULES and page != "docs/settings.md"]
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
    commands = [command for command, _ in _shown()]
    begin, end = commands.index("make demo"), commands.index("make test")
    searches = [command for command in commands[begin:end] if " search " in command]
    assert commands[begin + 1] == f"parquetry refresh --config {demo['SETTINGS']}"
    assert [re.findall(r'"(.+)"$', command)[0] for command in searches] == list(demo["QUESTIONS"])


def test_readme_shows_real_output(original):
    """The README shows a refresh as a flow run; a direct one prints the same. The first refresh is the fixture's."""
    shown = [(command, output) for command, output in _shown() if command.startswith("parquetry")]
    assert len(shown) == 5
    for number, (command, output) in enumerate(shown):
        if number == 0:
            real = original.refreshed
        else:
            (done,) = original.shell(command.replace(" refresh ", " refresh --direct "))
            assert (done.code, done.stderr) == (0, "")
            real = done.stdout
        _assert_shows(_lines(output), _lines(real))
