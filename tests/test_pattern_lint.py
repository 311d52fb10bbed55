"""No regular expression has a form whose running time can explode on an unforeseen text."""

import re

import pytest

from tests.pattern_attacks import patterns
from tests.pattern_lint import faults

EXCEPTIONS = {
    "parquetry.credentials._ISSUED": "a private key without an end reaches to the end of the text, "
    "where the search ends, too",
}
"""patterns with a harmless fault -> reason"""
REFUSED = {
    "nested": [
        r"(a+)+$",
        r"(?:a|b+)*c",
        r"(?:\s*,\s*)*;",
        r"(?:(?:a+)b?)*c",
        r"(?:\w{1,20} ?)*;",
        r"(?:a+){2,9}c",
        r"(?:[^<]|<!--[^\n]*-->)*;",
        r"(?>(?:a+)*b)",
        r"(?i:(?:a+A?)*)b",
        r"x(?:(?:a+b*)c?)*d",
        r"(?:\s*<!--[^>]*-->\s*)*<html",
        r"(?s)(?:\s|<\?.*?\?>|<!--.*?-->)*<html",
        r"(?=(?:a+)*b)",
        r"(?:(\w)\1*)*;",
        rb"(?:\s+\s*)*x",
    ],
    "everything": [
        r"(?s)<a>.*?</a>",
        r"<a>(?s:.*)</a>",
        r"(?s:x|y.*z)",
        r"<!--[\s\S]*-->",
        r"<!--(?:.|\n)*?-->",
        r"(?s)a.{3,}b",
        r"(?s)a(?:(.))*+b",
        rb"(?s)<body\b.*",
    ],
}
TAKEN = [
    r"\w+(?:-\w+)*",
    r"(?:\n[ \t]*\|[^\n]*)*",
    r"(?:a?)*b",
    r"(?:a++)*b",
    r"(?:a+)*+b",
    r"(?:(?>a+))*b",
    r"(?>a+)*b",
    r"(?:,\s*\w++)*",
    r"(?:a{3})*",
    r"(?s)a.b",
    r"(?s:.{1,9})",
    r"<a>[^>]*>",
    r".*?;",
    r"'''(?:[^']|'(?!''))*+'''",
]


@pytest.mark.parametrize(("kind", "source"), [(kind, one) for kind, some in REFUSED.items() for one in some])
def test_a_form_that_takes_an_endless_time_is_refused(kind, source):
    assert kind in {fault.partition(":")[0] for fault in faults(re.compile(source))}


@pytest.mark.parametrize("source", TAKEN)
def test_a_form_in_which_every_character_has_one_place_is_taken(source):
    assert faults(re.compile(source)) == []


def test_no_pattern_of_the_product_has_such_a_form():
    """Every listed exception still has its fault; otherwise the exception is removed."""
    found = {name: told for name, (pattern, _) in patterns().items() if (told := faults(pattern))}
    assert found.keys() == EXCEPTIONS.keys(), found
