"""One service over a small corpus for the tests of a module, and clients of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from parquetry.sources.uploads import importing
from tests.servers.knowledge_service import KnowledgeService
from tests.workshop import Workshop

TEXTS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n\n## Moving\n\nOne more day for moving house.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    "sub/power.md": "# Power cuts\n\nAfter a power cut the fan in bay 4 runs backwards.\n",
}
SETTINGS = """
[corpus]
root = "corpus"
[extraction]
workers = 1
[metadata_denylists]
knowledge = ["salary"]
[[source]]
name = "docs"
uri = "docs"
"""


@pytest.fixture(autouse=True)
def _no_pause_between_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only host is a test's own; `tests/net` has tests of how long pages of one host are apart."""
    monkeypatch.setattr(importing, "_INTERVAL", 0.01)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with settings and a published corpus."""
    root = tmp_path_factory.mktemp("service")
    workshop = Workshop(root)
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    (root / "parquetry.toml").write_text(SETTINGS)
    return SimpleNamespace(root=root, workshop=workshop)


@pytest.fixture(scope="module")
def service(place):
    with KnowledgeService(place.root) as running:
        running.wait_ready()
        yield running


@pytest.fixture(scope="module")
def client(service):
    with service.client() as client:
        yield client
