"""Long series: what each day tries of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.documentation import ROOT
from tests.series import ALL, VARIABLE, part_of

HOOKS = "from tests.conftest import pytest_collection_modifyitems, pytest_configure, pytest_addoption\n"
TESTS = """
import time
import pytest

@pytest.mark.timeout(0.2)
@pytest.mark.series(5)
@pytest.mark.parametrize("number", range(20))
def test_long(number): time.sleep(number // 19 * LAST)

@pytest.mark.parametrize("number", range(20))
def test_whole(number): pass
"""


@pytest.mark.parametrize("length", [1, 5, 6, 7, 20, 61])
def test_days_in_a_row_try_every_member(monkeypatch, length):
    tried = set()
    for day in range(739_000, 739_000 + length):
        monkeypatch.setenv(VARIABLE, str(day))
        part = part_of(range(length), 5)
        assert len(part) == len(set(part)) <= 5
        assert {0, length - 1} <= set(part)
        assert part == sorted(part)
        tried |= set(part)
    assert tried == set(range(length))


def test_all_are_tried_if_they_are_asked_for(monkeypatch):
    monkeypatch.setenv(VARIABLE, ALL)
    assert part_of(range(61), 5) == list(range(61))


@pytest.mark.parametrize(("chosen", "long", "last"), [("739000", 5, 0), ("all", 20, 0.5)])
def test_marked_tests_are_a_series(tmp_path, chosen, long, last):
    """Processes of one run try the same part, whatever the moment at which they collect the tests.

    What tries everything may take longer than the limit of a test.
    """
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_some.py").write_text(TESTS.replace("LAST", str(last)))
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = {"PYTHONPATH": str(ROOT), VARIABLE: chosen, "HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert f"{long + 20} passed" in done.stdout, done.stdout + done.stderr
