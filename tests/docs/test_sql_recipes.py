"""Every SQL recipe returns the same rows in Python, in `parquetry sql`, and in DuckDB's own program."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parquetry.settings.sections import load_settings
from parquetry.storage.connect import connect
from tests.docs.conftest import Desk
from tests.documentation import ROOT, Block, blocks_of, text_of

pytestmark = pytest.mark.slow

PAGE = "docs/sql.md"
SETTINGS = "examples/library.toml"
RECIPES = [block for block in blocks_of(PAGE) if block.language == "sql"]
FILES_ONLY = r"\b(embed|search_hybrid)\(|\b(texts|all_texts|document_history)\b"
"""pattern of names that the index file does not have"""
MAY_BE_EMPTY = "No rows if"
ARRIVED = {"chunks.parquet": b"PAR1", "missing.csv": b"uri,status,error\n"}
"""files that recipes write -> their first bytes"""


def introduction(block: Block) -> str:
    """Return the text between the heading of a recipe, or the recipe before it, and the recipe."""
    before = text_of(PAGE).partition(block.code)[0].rpartition("```sql")[0]
    return re.split(r"^(?:#.*|```)$", before, flags=re.MULTILINE)[-1]


def in_two_ways(block: Block) -> bool:
    return "first two ways" in introduction(block)


def is_export(block: Block) -> bool:
    return block.code.startswith("COPY")


def as_text(block: Block) -> str:
    """Return a statement with text columns only, so that two programs can be compared."""
    return f"SELECT COLUMNS(*)::VARCHAR FROM ({block.code.strip().removesuffix(';')})"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, commands: Path) -> Iterator[Desk]:
    """Run the first block of the page in a checkout; the first test process does so for all."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    desk, done = Desk(shared / "library", "", commands), shared / "library.done"
    with (shared / "library.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.copytree(ROOT / "examples", desk.folder / "examples")
            for line in blocks_of(PAGE)[0].code.splitlines():
                for each in desk.shell(line):
                    assert (each.code, each.stderr) == (0, ""), line
            done.touch()
    yield desk
    desk.close()


@pytest.fixture(scope="session")
def corpus(library: Desk) -> Any:
    settings = load_settings(library.folder / SETTINGS)
    return connect(settings.corpus.root, settings=settings)


def index_file(library: Desk) -> Path:
    return max((library.folder / ".demo/library/index").glob("index-*.duckdb"), key=lambda each: each.stat().st_mtime)


def duckdb_program(library: Desk, home: Path, statement: str) -> subprocess.CompletedProcess[str]:
    """Run DuckDB's own program on the index file, unable to download or find extensions."""
    home.mkdir(exist_ok=True)
    program = Path(sys.executable).parent / "duckdb"
    offline = "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false"
    return subprocess.run(
        [str(program), "-readonly", "-json", "-cmd", offline, str(index_file(library)), statement],
        cwd=library.folder,
        env={"HOME": str(home), "TZ": "UTC"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_other_commands_of_the_page_run_in_order(library: Desk) -> None:
    first, *others = [block for block in blocks_of(PAGE) if block.language in {"sh", "python"}]
    assert first == blocks_of(PAGE)[0]
    for block in others:
        for done in library.shell(block.code) if block.language == "sh" else [library.python(block.code)]:
            assert (done.code, done.stderr) == (0, ""), block.name
            assert re.search(r"default\W+38\b.*sales\W+5\b", done.stdout, re.DOTALL), block.name
    assert len(others) == 4


def test_page_has_only_blocks_that_are_run() -> None:
    assert {block.language for block in blocks_of(PAGE)} == {"sh", "python", "sql"}
    assert len(RECIPES) >= 20


@pytest.mark.parametrize("block", RECIPES, ids=lambda block: block.name)
def test_recipe_says_when_the_index_file_is_not_enough(block: Block) -> None:
    assert in_two_ways(block) == bool(re.search(FILES_ONLY, block.code))


@pytest.mark.parametrize("block", [each for each in RECIPES if not is_export(each)], ids=lambda block: block.name)
def test_recipe_gives_the_same_rows_everywhere(block: Block, library: Desk, corpus: Any, tmp_path: Path) -> None:
    here = corpus.execute(as_text(block)).fetchall()
    assert here or MAY_BE_EMPTY in introduction(block)
    done = library.parquetry(["sql", "--config", SETTINGS, "--json", as_text(block)])
    assert (done.code, done.stderr) == (0, "")
    assert [tuple(row) for row in json.loads(done.stdout)["rows"]] == here
    if in_two_ways(block):
        return
    done = duckdb_program(library, tmp_path / "home", as_text(block))
    assert (done.returncode, done.stderr) == (0, "")
    assert [tuple(row.values()) for row in json.loads(done.stdout or "[]")] == here
    assert list((tmp_path / "home").rglob("*extension*")) == []


@pytest.mark.parametrize("block", [each for each in RECIPES if is_export(each)], ids=lambda block: block.name)
def test_export_is_written_everywhere(
    block: Block, library: Desk, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = re.findall(r"'\.demo/(.+?)'", block.code)
    written = library.folder / ".demo" / name

    def arrived() -> int:
        content = written.read_bytes()
        assert content.startswith(ARRIVED[name])
        written.unlink()
        return len(content)

    monkeypatch.chdir(library.folder)
    corpus.execute(block.code)
    sizes = [arrived()]
    assert library.parquetry(["sql", "--config", SETTINGS, block.code]).code == 0
    sizes.append(arrived())
    assert duckdb_program(library, tmp_path / "home", block.code).returncode == 0
    sizes.append(arrived())
    assert min(sizes) > 0.5 * max(sizes)


def test_what_the_recipes_claim_is_so(corpus: Any) -> None:
    """The rows that the page points out are there."""
    rows = {block.code: corpus.execute(block.code).fetchall() for block in RECIPES if not is_export(block)}

    def of(part: str) -> list[tuple[Any, ...]]:
        (found,) = [result for code, result in rows.items() if part in code]
        return found

    assert [row[:3] for row in of("percent_indexed")] == [("default", "handbook", 38), ("sales", "sales", 5)]
    assert [row[0] for row in of("unnest(tags)")] == ["handbook", "internal", "sales"]
    assert [(row[0], row[2]) for row in of("first_error")] == [("no-text", 5)]
    assert [row[2] for row in of("GROUP BY content_hash")] == [
        "handbook: finance/price-list.ods, sales: price-list.ods"
    ]
    assert [row[:3] for row in of("list_cosine_similarity")] == [("sales", "lyon.txt", 2)]
    assert 0.9 < of("list_cosine_similarity")[0][-1] < 1
    assert of("ANTI JOIN search_text")[0][0] == "parental-leave.md"
    assert of("new parents stay at home")[0][0] == "parental-leave.md"
    assert of("search_vector(")[0][-1] == 1
    neighbours = of("s.namespace = 'sales'")
    assert [row[2] for row in neighbours[-3:]] == ["price-list.ods"] * 3
    assert neighbours[0][-1] < 0.5
