"""The code keeps its shape: short functions, files with one subject, one class name for one thing."""

import ast
import functools
from collections import defaultdict
from dataclasses import dataclass

from tests.product_modules import product_modules

LONGEST_FUNCTION, LONGEST_FILE = 60, 400
"""lines"""


@dataclass(frozen=True)
class Module:
    """Shape of a module."""

    name: str
    lines: int
    functions: tuple[tuple[str, int], ...]
    """name and lines of each function"""
    classes: tuple[str, ...]
    """names of the public classes"""


@functools.cache
def modules() -> tuple[Module, ...]:
    """Return the shape of each module; parsing all takes seconds."""
    return tuple(_shape(name, file.read_text("utf-8")) for name, file in product_modules())


def _shape(name: str, text: str) -> Module:
    nodes = [*ast.walk(ast.parse(text))]
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    lengths = tuple((node.name, node.end_lineno - node.lineno + 1) for node in functions)
    classes = tuple(node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    return Module(name, text.count("\n"), lengths, classes)


def test_functions_and_files_are_short():
    found = []
    for module in modules():
        found += [(module.name, module.lines)] if module.lines > LONGEST_FILE else []
        found += [(f"{module.name}.{name}", length) for name, length in module.functions if length > LONGEST_FUNCTION]
    assert found == []


def test_name_of_a_public_class_stands_once():
    places = defaultdict(list)
    for module in modules():
        for name in module.classes:
            places[name].append(module.name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
