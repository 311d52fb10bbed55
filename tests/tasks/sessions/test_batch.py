"""A batch of sessions that failed as a whole."""

from __future__ import annotations

import pytest

from parquetry.errors import DiskFull, SettingsError
from parquetry.tasks.sessions.batch import SessionBatch, failed_sessions


def test_full_disk_ends_the_run_by_its_name():
    with pytest.raises(DiskFull, match="no space left on device: x; nothing was published"):
        failed_sessions(SessionBatch(0, ()), OSError(28, "No space left on device", "x"))


def test_error_that_concerns_the_whole_run_is_raised():
    with pytest.raises(SettingsError, match="no key"):
        failed_sessions(SessionBatch(0, ()), SettingsError("no key"))
