"""Fixtures for all rooms."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.azurite import Azurite
from servers.google_storage import GoogleStorage
from servers.seaweed import S3Server, seaweed
from workshop import Workshop

from knowledge import reply_forms
from knowledge.quota import quota_of


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """An empty source folder with settings for a corpus beside it."""
    return Workshop(tmp_path)


@pytest.fixture(autouse=True)
def _nothing_known_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process remembers each service by its address; a test's server may get the port of one that was otherwise."""
    monkeypatch.setattr(reply_forms, "_known", {})
    quota_of.cache_clear()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server; every test takes a bucket of its own."""
    with seaweed() as server:
        yield server


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """A running emulator of Azure Blob Storage, shared by all tests; each takes a container of its own."""
    with Azurite() as server:
        yield server


@pytest.fixture(scope="session")
def google_storage() -> Iterator[GoogleStorage]:
    """A running emulator of Google Cloud Storage, shared by all tests; each takes a bucket of its own."""
    with GoogleStorage() as server:
        yield server


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[str]:
    """A Prefect server with an empty database; flows that run in this process work with it."""
    # A server that people use is no place for tests, and its settings none of theirs.
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    os.environ |= {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    # Prefect's threads keep objects of DuckDB alive to the very end, which its binding then reports, a hundred lines.
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
    with prefect_test_harness(server_startup_timeout=120):
        url = PREFECT_API_URL.value()
        assert url
        yield url
