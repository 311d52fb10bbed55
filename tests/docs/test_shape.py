"""The code keeps its shape: short functions, files with one subject, one class name for one thing."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.product_modules import product_modules

LONGEST_FUNCTION, LONGEST_FILE = 60, 400
"""lines"""


def modules() -> Iterator[tuple[str, int, ast.Module]]:
    """Yield name, lines and syntax tree of each module."""
    for name, file in product_modules():
        text = file.read_text("utf-8")
        yield name, text.count("\n"), ast.parse(text)


def test_functions_and_files_are_short():
    found = []
    for name, lines, tree in modules():
        found += [(name, lines)] if lines > LONGEST_FILE else []
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = node.end_lineno - node.lineno + 1
                found += [(f"{name}.{node.name}", length)] if length > LONGEST_FUNCTION else []
    assert found == []


def test_name_of_a_public_class_stands_once():
    places = defaultdict(list)
    for name, _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
