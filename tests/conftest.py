"""Fixtures for all rooms."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """An empty source folder with settings for a corpus beside it."""
    return Workshop(tmp_path)
