"""Reason codes are one list: `parquetry/reasons.py` has each that the code uses, and no other."""

import ast
import re
from collections.abc import Iterator
from typing import get_args

from parquetry.reasons import DOCUMENTS, IMPORTS, JOBS, JUDGEMENTS, REASONS, REQUESTS, UPLOADS
from parquetry.serving.access.tokens import Invalid
from parquetry.sessions.merge.guards import _ABSENT
from tests.documentation import text_of
from tests.product_modules import product_modules

KEBAB = re.compile(r"[a-z]+(-[a-z0-9]+)*")
CARRIERS = {
    "AccessRefused": 0,
    "BrokenDocument": 0,
    "DocumentError": 0,
    "Failed": 0,
    "Forbidden": 0,
    "Lost": 1,
    "NotAuthenticated": 0,
    "NotVisible": 0,
    "Objection": 0,
    "Problem": 1,
    "RejectedRow": 0,
    "SkippedDocument": 0,
    "TransientError": 0,
    "UnusableAccess": 0,
    "UpstreamFailed": 0,
    "UnusableParameter": 0,
    "Verdict": 1,
    "WorkerLost": 0,
}
"""calls that carry a reason -> position of the reason among their arguments"""
COMPOSED = {
    *(f"token-{state}" for state in get_args(Invalid)),
    *(f"{kind}-{fate}" for kind in _ABSENT for fate in ("invented", "lost")),
}
"""codes put together from parts"""
TABLES = {"_REASONS", "_STATUSES"}
"""tables of kinds of errors with their reasons"""


def strings(node: ast.AST) -> Iterator[str]:
    """Yield the strings that an expression may be, not those that it compares with."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.IfExp):
        yield from strings(node.body)
        yield from strings(node.orelse)
    elif isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from strings(each)
    elif isinstance(node, ast.Dict):
        for each in node.keys:
            yield from strings(each)


def assigned(tree: ast.AST) -> dict[str, set[str]]:
    """Return the strings that each name of a module may be."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, set()).update(strings(node.value))
    return found


def reasons() -> dict[str, set[str]]:
    """Return each reason of the code with its modules."""
    trees = {name: ast.parse(file.read_text("utf-8")) for name, file in product_modules()}
    names = {name: assigned(tree) for name, tree in trees.items()}
    constants = {
        constant: values for found in names.values() for constant, values in found.items() if constant.isupper()
    }
    used: dict[str, set[str]] = {}
    for name, tree in trees.items():
        known = {**constants, **names[name]}
        codes = {code for table in TABLES & set(names[name]) for code in known[table]} | known.get("reason", set())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CARRIERS:
                given = node.args[CARRIERS[node.func.id] :][:1] or [k.value for k in node.keywords if k.arg == "reason"]
                for each in given:
                    codes.update(known.get(each.id, ()) if isinstance(each, ast.Name) else strings(each))
        for code in codes:
            if KEBAB.fullmatch(code):
                used.setdefault(code, set()).add(name)
    return used


def test_reasons_of_the_code_are_the_list():
    used = reasons()
    # It finds those of errors, too.
    assert "parquetry.decompress" in used["too-large"]
    assert "parquetry.net.page_fetcher" in used["server-error"]
    assert "parquetry.serving.jobs.context" in used["outage"]
    assert {code: where for code, where in used.items() if code not in REASONS} == {}
    assert set(REASONS) - set(used) - COMPOSED == set()


def test_codes_have_one_form_and_stand_once():
    assert [code for code in REASONS if not KEBAB.fullmatch(code)] == []
    assert len(REASONS) == sum(map(len, (DOCUMENTS, UPLOADS, IMPORTS, JOBS, REQUESTS, JUDGEMENTS)))


def test_page_has_each_code_with_its_line():
    assert re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", text_of("docs/reasons.md"), re.MULTILINE) == list(
        REASONS.items()
    )
