"""Fixtures for storage."""

import pytest

from tests.storage.shelf import Shelf


@pytest.fixture
def shelf(tmp_path):
    """An empty corpus."""
    return Shelf(tmp_path / "corpus")
