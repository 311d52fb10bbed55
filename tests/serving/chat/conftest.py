"""The application over a small corpus with two people's documents, in front of a scripted model service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.http_app import RunningApp, running_app
from tests.servers.model_service import ModelService
from tests.serving.audited import events_from_now
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
    settings = parse_settings({**shelf.settings.model_dump(exclude_unset=True), **values}, "test")
    with running_app(settings) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


AGENTS = [
    {"name": "helper", "model": "m-large", "system_prompt": "Be brief.", "inline_citations": True, "top_k": 2},
    {"name": "oak-helper", "model": "m", "filters": {"filename": "oak.*"}, "namespaces": ["default"]},
    {"name": "hr-helper", "model": "m", "namespaces": ["hr"]},
]


@pytest.fixture(scope="session")
def running(shelf):
    """Run one application in front of one model service, for tests that only differ in what the model says."""
    with ModelService() as service, proxy(shelf, service, agent=AGENTS) as app:
        tokens = {
            "ada": app.resources.tokens.create("ada", user_id="ada", rights=["search", "read"])[1],
            "eve": app.resources.tokens.create("eve", user_id="eve", rights=["search", "read"])[1],
            "seeker": app.resources.tokens.create("seeker", user_id="ada", rights=["search"])[1],
            "hr": app.resources.tokens.create("hr", namespaces=["hr"], rights=["search", "read"])[1],
            "root": app.resources.tokens.create("root", rights=["admin"])[1],
        }
        yield SimpleNamespace(app=app, service=service, tokens=tokens)


@pytest.fixture
def model(running):
    """Return the model service, with nothing asked yet; all that is scripted must be asked for."""
    running.service.forget()
    yield running.service
    running.service.check()


@pytest.fixture
def ask(running, model):
    """Return a function that sends a chat and returns the answer."""

    def send(question="How many days of holiday?", token="sk-foreign", path="/v1/chat/completions", **body):
        body.setdefault("messages", [{"role": "user", "content": question}])
        with running.app.client(running.tokens.get(token, token)) as client:
            return client.post(path, json={"model": "m", **body})

    return send


@pytest.fixture
def events(running):
    """Return a function that returns the audit events since the test began, as `events_from_now` does."""
    return events_from_now(running.app.resources.state)
