"""The two tiers of tests: `make test` leaves out the slow tests, but no package."""

import os
import re
import subprocess

import pytest

from tests.documentation import ROOT
from tests.shares import Share


def _rooms():
    """Return the names of the packages below `parquetry/`, links to the rooms at the top level among them."""
    return sorted(path.parent.name for path in (ROOT / "parquetry").glob("*/__init__.py"))


def _commands(target):
    # Not as the `make` that runs these tests was asked to.
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "SHARE")}
    command = ["make", "--dry-run", target]
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "bin/pytest" in line]


def test_make_test_leaves_out_what_is_slow_and_make_test_all_nothing():
    (fast,), (first, slow) = _commands("test"), _commands("test-all")
    assert fast.endswith(' -m "not slow"')
    assert [first, slow.endswith(" --share= -m slow")] == [fast, True]


def test_ci_runs_both_tiers_with_the_share_of_long_series_that_the_commit_chooses(tmp_path):
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    ((command, _, share),) = [line.partition(" SHARE=") for line in lines if line.startswith("make ")]
    assert command == "make test test-all"
    # There is a commit, or not.
    for folder in (ROOT, tmp_path):
        told = subprocess.run(["bash", "-c", f"echo {share}"], cwd=folder, capture_output=True, text=True, check=True)
        assert Share.parse(told.stdout.strip()).of == 4


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
