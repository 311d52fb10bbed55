"""Shares of long series: each commit tries some of their cases, a few commits try all."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shares import SHORT, Share

SERIES = [f"tests/test_a.py::test_many[{number}]" for number in range(30)]
SINGLE = [
    "tests/test_a.py::test_one",
    *(f"tests/test_b.py::test_few[{number}]" for number in range(SHORT)),
    "tests/test_b.py::test_many",
]


def kept(number, of):
    tests = [*SINGLE, *SERIES]
    return [test for test in tests if test not in Share(number, of).left_out(tests)]


@pytest.mark.parametrize("of", [1, 2, 4, 7])
def test_shares_together_have_every_case_once_and_each_has_some(of):
    cases = [[test for test in kept(number, of) if test in SERIES] for number in range(of)]
    assert sorted(test for each in cases for test in each) == sorted(SERIES)
    assert min(map(len, cases)) >= len(SERIES) // of


def test_tests_with_few_cases_are_in_every_share():
    for number in range(4):
        assert [test for test in kept(number, 4) if test not in SERIES] == SINGLE


def test_few_cases_that_are_marked_are_a_series():
    few = [test for test in SINGLE if "few" in test]
    assert [test for test in few if test not in Share(1, 4).left_out(few, {*few})] == [few[1], few[5]]


def test_numbers_of_commits_choose_each_share():
    assert [Share.parse(f"{number}/4").number for number in (0, 3, 4, 0xABCDE1)] == [0, 3, 0, 1]


@pytest.mark.parametrize("written", ["", "1", "1/0", "a/4", "-1/4", "1/4/2"])
def test_what_is_no_share_is_refused(written):
    with pytest.raises(pytest.UsageError, match="like 2/4"):
        Share.parse(written)


@pytest.mark.slow
def test_run_tries_its_share_of_the_slow_series_alone(monkeypatch):
    """A slow series of this project, and a fast one."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    slow, fast = "tests/sessions/transcripts/test_transcript_growth.py", "tests/test_shares.py"

    def collected(share):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *share, slow, fast]
        root = Path(__file__).parents[1]
        told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
        found = [line for line in told.splitlines() if "::" in line]
        return {file: {line for line in found if line.startswith(file)} for file in (slow, fast)}

    every, shares = collected([]), [collected(["--share", f"{number}/2"]) for number in range(2)]
    assert shares[0][fast] == shares[1][fast] == every[fast]
    assert shares[0][slow] | shares[1][slow] == every[slow]
    assert 0 < len(shares[0][slow]) < 0.6 * len(every[slow])
