"""Plugin of pytest that tells the processor time of the tests, by file: `--processor-seconds`.

Other load on the machine changes it little, unlike the time that passes: a file that takes much longer than its
processor time waits for something. Child processes count in the test that ends them, and a server that the whole
session shares in a line of its own, with the fixture that ends it.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

SHOWN = 60
"""files in the report"""
_PROPERTY = "processor seconds"
_OF_FIXTURES = "processor seconds of fixtures"


def used() -> float:
    """Return the processor time in seconds of this process and of its children that have ended."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


@dataclass
class Cost:
    """Number and times of the tests of a file."""

    tests: int = 0
    processor: float = 0
    """seconds"""
    passed: float = 0
    """seconds that passed"""


class ProcessorReport:
    """Collects the costs of tests, in each test process and in the one that reports on all."""

    def __init__(self) -> None:
        self._started = used()
        self._finished = self._started
        """seconds used when the test or its last fixture ended"""
        self._ended: dict[str, float] = {}
        """fixture of the session -> what its end used in seconds"""
        self._costs: defaultdict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logstart(self) -> None:
        """Note what was used before a test."""
        self._started = used()
        self._ended = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        """Note what was used before fixtures end."""
        self._finished = used()

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Note what the end of a fixture of the session used: the processes that it ends count there."""
        before, self._finished = self._finished, used()
        if fixturedef.scope == "session" and self._finished > before:
            name = f"fixture {fixturedef.argname}"
            self._ended[name] = self._ended.get(name, 0) + self._finished - before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Give the report on the end of a test what the test used, so that it reaches the reporting process."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_PROPERTY, used() - self._started - sum(self._ended.values())))
            report.user_properties.append((_OF_FIXTURES, self._ended))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the reports on a test."""
        cost = self._costs[report.nodeid.partition("::")[0]]
        cost.passed += report.duration
        if report.when == "teardown":
            cost.tests += 1
            properties = dict(report.user_properties)
            cost.processor += properties.get(_PROPERTY, 0)
            for name, seconds in properties.get(_OF_FIXTURES, {}).items():
                self._costs[name].processor += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the files that took most."""
        costs = self._costs.values()
        total = Cost(*(sum(getattr(cost, name) for cost in costs) for name in ("tests", "processor", "passed")))
        ranked = sorted(self._costs.items(), key=lambda named: -named[1].processor)
        terminalreporter.section(f"processor seconds, load {os.getloadavg()[1]:.1f}")
        terminalreporter.write_line("  tests  processor     passed")
        for name, cost in [*ranked[:SHOWN], (f"all {len(ranked)} files", total)]:
            terminalreporter.write_line(f"{cost.tests:7} {cost.processor:10.1f} {cost.passed:10.1f}  {name}")
