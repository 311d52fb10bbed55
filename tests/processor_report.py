"""Plugin of pytest that tells the processor time of the tests, by file: `--processor-seconds`.

Other load on the machine changes it little, unlike the time that passes: a file that takes much longer than its
processor time waits for something. Child processes count in the test that ends them, so a server that the whole session
shares counts nowhere.
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
        self._costs: defaultdict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logstart(self) -> None:
        """Note what was used before a test."""
        self._started = used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Give the report on the end of a test what the test used, so that it reaches the reporting process."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_PROPERTY, used() - self._started))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the reports on a test."""
        cost = self._costs[report.nodeid.partition("::")[0]]
        cost.passed += report.duration
        if report.when == "teardown":
            cost.tests += 1
            cost.processor += dict(report.user_properties).get(_PROPERTY, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the files that took most."""
        costs = self._costs.values()
        total = Cost(*(sum(getattr(cost, name) for cost in costs) for name in ("tests", "processor", "passed")))
        ranked = sorted(self._costs.items(), key=lambda named: -named[1].processor)
        terminalreporter.section(f"processor seconds, load {os.getloadavg()[1]:.1f}")
        terminalreporter.write_line("  tests  processor     passed")
        for name, cost in [*ranked[:SHOWN], (f"all {len(ranked)} files", total)]:
            terminalreporter.write_line(f"{cost.tests:7} {cost.processor:10.1f} {cost.passed:10.1f}  {name}")
