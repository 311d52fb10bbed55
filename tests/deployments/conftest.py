"""A Prefect server as operators of a work pool run it, and the deployments served from it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from parquetry.flows.orchestration.server import lasting_server
from tests.deployments.served import Api, environment
from tests.prefect_homes import fill_home
from tests.workshop import Workshop


@pytest.fixture
def library(workshop) -> Workshop:
    for number in range(3):
        workshop.write(f"{number}.md", f"# Rule {number}\n\nCount the boards {number + 2} times.\n")
    return workshop


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Api]:
    """Run a server with all its services, for the programs of this test."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    fill_home(tmp_path / "server")
    with lasting_server(tmp_path / "server", 0) as server:
        server.wait()
        monkeypatch.setenv("PREFECT_API_URL", server.api_url)
        yield Api(server.ui_url)
