"""Failures are named when they happen, also by a run that is stopped before its end."""

import os
import signal
import subprocess
import sys

import pytest

from tests.documentation import ROOT

pytestmark = pytest.mark.slow

CONFTEST = """
from tests.failure_report import FailureReport

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureReport(config))
"""
TESTS = """
import time
import pytest

def test_passing(): pass
def test_failing(): assert 1 + 1 == 3, "that is not so"

@pytest.fixture
def broken(): raise OSError("no such server")

def test_of_a_broken_fixture(broken): pass
def test_endless(): time.sleep(600)
"""


def test_run_that_is_stopped_has_told_of_its_failures(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        [*command, str(tmp_path)],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            told = []
            while "no such server" not in "".join(told[-1:]):
                told.append(run.stdout.readline())
                assert told[-1], told
            run.send_signal(signal.SIGTERM)
            rest = run.stdout.read()
        finally:
            run.kill()
    at_once = "".join(told)
    assert "FAILED test_some.py::test_failing (call, " in at_once
    assert "AssertionError: that is not so" in at_once
    assert "FAILED test_some.py::test_of_a_broken_fixture (setup, " in at_once
    # What failed is shown in full, as after a whole run.
    assert 'def test_failing(): assert 1 + 1 == 3, "that is not so"' in rest
    assert "1 failed, 1 passed, 1 error" in rest
