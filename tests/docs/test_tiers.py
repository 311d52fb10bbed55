"""The two tiers of tests: `make test` leaves out the slow tests, but no package."""

import re
import subprocess

import pytest

from tests.documentation import ROOT

ROOMS = (
    *("storage", "tasks", "flows", "serving", "deployments"),
    *("chunking", "embed", "extract", "language", "llm", "net", "planning", "ranking", "rerank", "sessions"),
    *("settings", "sources"),
)


def _commands(target):
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "bin/pytest" in line]


def test_make_test_leaves_out_what_is_slow_and_make_test_all_nothing():
    (fast,), (first, slow) = _commands("test"), _commands("test-all")
    assert fast.endswith(' -m "not slow"')
    assert [first, slow.endswith(" -m slow")] == [fast, True]


def test_ci_runs_both_tiers():
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("make ")] == ["make test test-all"]


@pytest.mark.parametrize("room", ROOMS)
def test_fast_tier_covers_every_room(room):
    modules = [path.read_text("utf-8") for path in (ROOT / "tests" / room).rglob("test_*.py")]
    fast = [text for text in modules if not re.search(r"^pytestmark = .*pytest\.mark\.slow", text, re.MULTILINE)]
    assert fast
