"""The two tiers of tests: `make test` leaves out the slow tests, but no package."""

import re
import subprocess

import pytest

from tests.documentation import ROOT


def _rooms():
    """Return the names of the packages below `parquetry/`, links to the rooms at the top level among them."""
    return sorted(path.parent.name for path in (ROOT / "parquetry").glob("*/__init__.py"))


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


@pytest.mark.parametrize("room", _rooms())
def test_fast_tier_covers_every_room(room):
    modules = [path.read_text("utf-8") for path in (ROOT / "tests" / room).rglob("test_*.py")]
    fast = [text for text in modules if not re.search(r"^pytestmark = .*pytest\.mark\.slow", text, re.MULTILINE)]
    assert fast


@pytest.mark.parametrize("room", _rooms())
def test_tests_mirror_the_packages_of_a_room(room):
    """A folder of tests in a room is named after a subpackage, unless it holds helpers or files."""
    packages = {path.parent.name for path in (ROOT / "parquetry" / room).glob("*/__init__.py")}
    folders = {path.parent.name for path in (ROOT / "tests" / room).glob("*/test_*.py")}
    assert folders <= packages
