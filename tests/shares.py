"""Plugin of pytest that tries a share of the cases of long series: `--share 2/4`.

A series is one test of the slow tier with many cases that differ in an input alone. Each run of the continuous
integration tries a share of them, chosen by the commit, so that a few commits try all; `make test-all` does at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

SHORT = 6
"""maximum cases of a test that is no series: all are tried each time"""


@dataclass(frozen=True, slots=True)
class Share:
    """One of the parts into which series are divided."""

    number: int
    """from 0"""
    of: int

    @classmethod
    def parse(cls, written: str) -> Share:
        """Read `N/M`; a number that is too large begins again at 0, so that one can be taken from a commit's name."""
        found = re.fullmatch(r"(\d+)/([1-9]\d*)", written)
        if found is None:
            raise pytest.UsageError(f"--share is a number and how many shares there are, like 2/4, not {written!r}")
        return cls(int(found[1]) % int(found[2]), int(found[2]))

    def left_out(self, tests: Iterable[str]) -> set[str]:
        """Return the ids of the tests that are not in this share.

        Args:
            tests: ids in their order; cases of a series are neighbours of each other in all shares.
        """
        series: defaultdict[str, list[str]] = defaultdict(list)
        for test in tests:
            series[test.partition("[")[0]].append(test)
        return {
            test
            for cases in series.values()
            if len(cases) > SHORT
            for place, test in enumerate(cases)
            if place % self.of != self.number
        }


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests that are in other shares."""
    if not config.option.share:
        return
    gone = Share.parse(config.option.share).left_out(
        item.nodeid for item in items if item.get_closest_marker("slow") is not None
    )
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in gone])
    items[:] = [item for item in items if item.nodeid not in gone]
