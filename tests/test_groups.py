"""Tests that share what takes long to make, run by several processes: one of them runs all that share it."""

import os
import re
import subprocess
import sys

import pytest

from tests.documentation import ROOT

pytestmark = pytest.mark.slow

CONFTEST = "from tests.conftest import pytest_collection_modifyitems\n"
SHARING = """
import time
import pytest

@pytest.fixture(scope="module")
def shared(): return 1

@pytest.mark.parametrize("number", range(6))
def test_sharing(shared, number): time.sleep(0.2)
"""
MARKED = """
import time
import pytest

@pytest.mark.xdist_group("one process")
@pytest.mark.parametrize("number", range(6))
def test_marked(number): time.sleep(0.2)
"""


MADE_NOW = """
import os
import pytest

@pytest.mark.parametrize("archive", [os.urandom(40), os.urandom(40)])
def test_reading(archive): assert archive
"""
NAMES = "from tests.conftest import pytest_make_parametrize_id\n"


def run_by_three(folder):
    """Run the tests of a folder in three processes."""
    command = [sys.executable, "-m", "pytest", "-v", "-n", "3", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_group_runs_in_one_process(tmp_path):
    """Of a version of pytest that pytest-xdist did not know, each test went to any process, and nothing said so."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_sharing.py").write_text(SHARING)
    (tmp_path / "test_marked.py").write_text(MARKED)
    done = run_by_three(tmp_path)
    ran = re.findall(r"^\[(gw\d)\].*PASSED \S*?(test_sharing|test_marked)\.py", done.stdout, re.MULTILINE)
    assert len(ran) == 12, done.stdout + done.stderr
    for name in ("test_sharing", "test_marked"):
        assert len({process for process, file in ran if file == name}) == 1, done.stdout


@pytest.mark.parametrize(("names", "expected"), [(NAMES, "2 passed"), ("", "Different tests were collected")])
def test_names_of_tests_do_not_depend_on_contents_that_each_process_makes(tmp_path, names, expected):
    """An archive holds the second in which it was made: runs whose processes began in different ones ended at once."""
    (tmp_path / "conftest.py").write_text(names)
    (tmp_path / "test_reading.py").write_text(MADE_NOW)
    assert expected in run_by_three(tmp_path).stdout
