"""Plugin of pytest that names each failure when it happens: a run that was stopped or killed told of none."""

from __future__ import annotations

import signal

import pytest


class FailureReport:
    """Writes of each test that fails its name, where it failed and with which error, between the dots of the others."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        if self._config.getoption("numprocesses", None):
            # Whoever stops the run learns all that is known by then, as with Ctrl-C.
            signal.signal(signal.SIGTERM, signal.default_int_handler)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the lines of a report that is a failure."""
        if not report.failed:
            return
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        crash = getattr(report.longrepr, "reprcrash", None)
        terminal.ensure_newline()
        terminal.write_line(f"FAILED {report.nodeid} ({report.when}, {report.duration:.1f} s)", red=True)
        terminal.write_line(f"  {crash.path}:{crash.lineno}: {crash.message}" if crash else f"  {report.longreprtext}")
