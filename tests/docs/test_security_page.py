"""The claims of the security page are under test, and the examples for agents are locked."""

import re

import pytest

from parquetry.storage.search import locked
from tests.documentation import ROOT, blocks_of, text_of

PAGE = "SECURITY.md"
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text_of(PAGE))


def _rows():
    defended = text_of(PAGE).partition("## What is defended")[2].partition("## What is not")[0]
    return [line for line in defended.splitlines() if line.startswith("| ") and line != "| what | test |"]


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda part: part.rpartition("/")[2])
def test_test_that_a_claim_names_is_there(file, test):
    assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_every_claim_names_a_test():
    assert len(_rows()) > 15
    assert [row for row in _rows() if "::test_" not in row] == []
    assert len(NAMED) == sum(row.count("::test_") for row in _rows())


def test_no_test_that_is_named_is_left_out():
    """A skipped test, or one expected to fail, is no defence."""
    for file in {file for file, _ in NAMED}:
        assert not re.search(r"pytest\.mark\.(skip|xfail)\b", (ROOT / file).read_text("utf-8")), file


@pytest.mark.parametrize("page", ["docs/agents.md", "README.md"])
def test_sql_that_agents_are_shown_is_closed(page):
    text = text_of(page).partition("## For agents and applications")[2] if page == "README.md" else None
    lines = [
        line
        for block in blocks_of(page)
        for line in block.code.splitlines()
        if re.match(r"(\$ )?parquetry sql", line) and (text is None or line in text)
    ]
    assert lines or page == "README.md"
    assert [line for line in lines if not re.search(r" --(read-only|user|org) ", line)] == []


def test_bounds_are_those_that_the_pages_tell():
    told = text_of("docs/agents.md")
    (found,) = re.findall(r"may take (\d+) s, (\d+) GiB of DuckDB's memory and (\d+) GiB of the process's", told)
    assert tuple(map(int, found)) == (locked.SECONDS, locked.WORKING_MEMORY >> 30, locked.MEMORY >> 30)
    assert f"may take {locked.SECONDS} s" in text_of("docs/permissions.md")
