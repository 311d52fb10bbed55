"""Sources of `parquetry serve TARGET` stay fresh, whatever a refresh runs into."""

import pytest

from parquetry.serving.jobs import working
from parquetry.serving.jobs.watching import scopes_to_watch

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("error", [RuntimeError("a fault of the program"), OSError(28, "No space left on device")])
def test_error_that_nobody_foresaw_does_not_end_the_refreshes(jobs, monkeypatch, capfd, error):
    monkeypatch.setattr(working, "FRESH_AGAIN_SECONDS", 0.0)
    refreshes = []

    def refresh(*_):
        refreshes.append(1)
        if len(refreshes) == 1:
            raise error
        jobs.context.runs.stop()
        return ""

    monkeypatch.setattr(working, "refresh_scopes", refresh)
    working._keep_fresh(jobs.context, scopes_to_watch(jobs.settings, ["docs"], None))
    assert len(refreshes) == 2
    told = capfd.readouterr()
    assert "folders are not watched for 0 s: " in told.out + told.err
