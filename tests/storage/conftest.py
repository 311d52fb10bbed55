"""Fixtures for storage."""

import pytest

from tests.servers.small_s3 import small_s3
from tests.storage.notebook import Notebook
from tests.storage.shelf import Shelf


@pytest.fixture
def shelf(tmp_path):
    """An empty corpus."""
    return Shelf(tmp_path / "corpus")


@pytest.fixture
def notebook(shelf):
    """An empty notebook in an empty corpus."""
    return Notebook(shelf)


@pytest.fixture(scope="session")
def small_store():
    """A small object store that misbehaves on request."""
    with small_s3() as store:
        yield store
