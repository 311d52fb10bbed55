"""Workers of a run leave nothing open to the next test."""

import pytest

from parquetry.tasks.documents import worker


@pytest.fixture(autouse=True)
def closed():
    """End the extraction processes of the runs of a test."""
    yield
    worker.close_idle()
