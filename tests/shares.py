"""Plugin of pytest that tries a share of the cases of long series: `--share 2/4`.

A series is one test of the slow tier with many cases that differ in an input alone, or with a few long ones that are
marked as a series. Each run of the continuous
integration tries a share of them, chosen by the commit, so that a few commits try all; `make test-all` does at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable
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

    def has(self, place: int) -> bool:
        """Return True if a case is in this share, by its place in its series."""
        return place % self.of == self.number

    def left_out(self, tests: Iterable[str], marked: Container[str] = ()) -> set[str]:
        """Return the ids of the tests that are not in this share.

        Args:
            tests: ids in their order.
            marked: ids of tests with few cases that are series all the same.
        """
        series: defaultdict[str, list[str]] = defaultdict(list)
        for test in tests:
            series[test.partition("[")[0]].append(test)
        return {
            test
            for cases in series.values()
            if len(cases) > SHORT or cases[0] in marked
            for place, test in enumerate(cases)
            if not self.has(place)
        }


EVERY = Share(0, 1)


def share_of(config: pytest.Config) -> Share:
    """Return the share of a run of the tests."""
    return Share.parse(config.option.share) if config.option.share else EVERY


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests that are in other shares."""
    marked = {item.nodeid for item in items if item.get_closest_marker("series") is not None}
    slow = (item.nodeid for item in items if item.get_closest_marker("slow") is not None)
    gone = share_of(config).left_out(slow, marked)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in gone])
    items[:] = [item for item in items if item.nodeid not in gone]
