"""Docstrings and pages keep to plain English: no riddles at the start of a docstring, no phrases of a dialect."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation import PAGES, ROOT, text_of
from tests.product_modules import ROOMS

FOLDERS = (*ROOMS, "tests", "benchmarks", "docs")
OPENINGS = re.compile(r"(what|whether|how|who|whose|whom|where|when|which|that)\b", re.IGNORECASE)
PHRASES = re.compile(
    r"\b(somebody|whoever|whose the|where it stops|comes back short|looking twice|with chance in them|of one's own"
    r"|asked not to be asked|in a file without a name|(is|are) told of|is no time)\b",
    re.IGNORECASE,
)


def prose(module: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring and of each string below a field or constant."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.body:
                if (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                ):
                    yield each.lineno, each.value.value.strip()


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_name_a_thing_or_what_it_does(folder):
    found = [
        f"{module.relative_to(ROOT)}:{line}: {text[:60]}"
        for module in (ROOT / folder).rglob("*.py")
        for line, text in prose(module)
        if OPENINGS.match(text) or PHRASES.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs/decisions/")])
def test_pages_have_no_phrases_of_a_dialect(page):
    assert PHRASES.findall(text_of(page)) == []
