"""Counts agree with their nouns in every user-facing message."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from parquetry.plural import counted

ROOT = Path(__file__).parents[1]
_PLURAL = re.compile(
    r" (answers|bytes|calls|candidates|changes|chunks|decisions|documents|entries|failures|files|merges|notes|pages"
    r"|queries|results|rows|runs|sessions|sources|tokens|versions|windows)\b"
)


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (1, ["result"], "1 result"),
        (0, ["result"], "0 results"),
        (2, ["entry"], "2 entries"),
        (2, ["day"], "2 days"),
        (1, ["file holds", "files hold"], "1 file holds"),
        (3, ["file holds", "files hold"], "3 files hold"),
    ],
)
def test_noun_agrees_with_its_number(number, words, expected):
    assert counted(number, *words) == expected


@pytest.mark.parametrize(
    "file",
    [f for room in ("serving", "flows") for f in sorted((ROOT / room).rglob("*.py"))],
    ids=lambda file: file.name,
)
def test_no_message_puts_a_number_of_any_size_before_a_plural(file):
    """`1 results` used to be in the first lines of output that a new user saw."""
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant) and _PLURAL.match(text.value):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
    assert not found
