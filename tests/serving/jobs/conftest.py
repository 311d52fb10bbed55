"""A queue of jobs over a real corpus."""

import pytest

from tests.serving.jobs.desk import Desk


@pytest.fixture
def jobs(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.close()
