"""The application over a small corpus with two people's documents, in front of a scripted model service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import override, parse_settings
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.http_app import RunningApp, running_app
from tests.servers.model_service import ModelService
from tests.workshop import Workshop

TEXTS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    "sub/power.md": "# Power cuts\n\nAfter a power cut the fan in bay 4 runs backwards.\n",
}


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Return a published corpus: public documents, and one of ada's and one of eve's."""
    workshop = Workshop(tmp_path_factory.mktemp("chat"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    for name in ("ada", "eve"):
        folder = workshop.root / name
        folder.mkdir()
        (folder / f"{name}.md").write_text(f"The vault word of {name} is {name}word.")
    people = [
        {"name": name, "uri": str(workshop.root / name), "visibility": "individual", "user_id": name}
        for name in ("ada", "eve")
    ]
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "extraction": {"workers": 1}}
    sources = [{"name": "docs", "uri": str(workshop.folder)}, *people]
    whole = parse_settings({**settings, "source": sources}, "test")
    run_refresh(Request(whole), DirectEngine(), Observer())
    return SimpleNamespace(root=workshop.root, settings=whole)


@contextmanager
def proxy(shelf, service: ModelService, **sections) -> Iterator[RunningApp]:
    """Run the application in front of a model service."""
    upstream = {"base_url": service.base_url, "api_key": "sk-own-key-of-the-service", **sections.pop("upstream", {})}
    state = str(shelf.root / "state")
    values = {"upstream": upstream, **sections, "serve": {"state": state, **sections.get("serve", {})}}
    with running_app(override(shelf.settings, values)) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app
