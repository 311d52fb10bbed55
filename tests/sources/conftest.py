"""Sources shared by several test files."""

import pytest

from tests.servers.web_server import WebServer
from tests.sources.packed import local, remote


@pytest.fixture
def server():
    with WebServer() as server:
        yield server


@pytest.fixture(params=["local", "remote"])
def holding(request, tmp_path):
    """Make a source that holds the given files."""

    def make(files):
        if request.param == "remote":
            return remote(files)
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(content)
        return local(tmp_path)

    return make
