"""`python -m parquetry.deployments` is stopped before it has done anything: in order, whatever it is at."""

from __future__ import annotations

import signal

import pytest

from tests.deployments.served import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


MANY = 60
"""sources whose deployments take seconds to register, so that a signal comes in time on a busy machine, too"""


def settings(library, sources: int) -> str:
    """Return settings with so many sources that have a schedule."""
    named = (
        f'[[source]]\nname = "docs{number or ""}"\nuri = "{library.folder}/{number}"\nschedule = "0 0 1 1 *"\n'
        for number in range(sources)
    )
    return f'[corpus]\nroot = "{library.settings.corpus.root}"\n{"".join(named)}'


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stopped_the_moment_it_serves(library, tmp_path, how):
    with serving(settings(library, 1), tmp_path) as service:
        assert service.stop(how)
        output = service.output.read_text()
        assert service.process.returncode == 0, output
    assert "All deployments have been paused!" in output
    assert output.endswith("\nStopped.\n")
    assert "Traceback" not in output


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stopped_while_deployments_are_registered(library, tmp_path, how):
    with serving(settings(library, MANY), tmp_path, ready="refresh/docs: ") as service:
        assert service.stop(how)
        output = service.output.read_text()
        assert service.process.returncode == 130, output
    assert "Serving;" not in output
    assert "Traceback" not in output
    assert "ignored" not in output
