"""The corpus of the chats' tests, with two people's documents; its namespace is a vector store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers.model_service import (
    ModelService,
)
from tests.serving.chat.conftest import proxy, shelf
from tests.serving.responses.asking_client import client_of, token_of

__all__ = ["shelf"]


@pytest.fixture(scope="module")
def running(shelf) -> Iterator[Any]:
    """Yield the application with its model service."""
    with ModelService() as service, proxy(shelf, service) as app:
        yield app, service


@pytest.fixture
def service(running):
    """Return the model service, whose script is used up at the end of the test."""
    _, found = running
    found.requests.clear()
    yield found
    left, found._script[:] = list(found._script), []
    faults, found.unexpected[:] = list(found.unexpected), []
    assert (left, faults) == ([], [])


@pytest.fixture
def client(running, service):
    """Return ada's client."""
    app, _ = running
    return client_of(app, token_of(app, "ada"))
