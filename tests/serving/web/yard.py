"""A service with a source of documents, one of sessions, and scripted models, for the tests of runs and entries."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from parquetry.settings.sections import parse_settings
from tests.servers import session_model
from tests.servers.chat_server import ChatServer
from tests.servers.embedding_server import EmbeddingServer, Reply, Request, embeddings
from tests.servers.http_app import working_app
from tests.serving.web.browsing import Page, Visitor
from tests.sessions_shelf import Shelf

PRICE = 1000.0
"""US dollars per million tokens"""
HELD = "numbat"
"""word of texts whose vectors wait for the gate"""
BROKEN = b"PK\x03\x04 this is no document at all"
PATIENCE = 240


class Yard:
    """Files, a gate that holds the embedder up, and the running service.

    Args:
        root: folder of everything.
        embedder: the scripted embedder, whose vectors cost something; None for the built-in one.
        model: the scripted language model.
    """

    def __init__(self, root: Path, embedder: EmbeddingServer | None, model: ChatServer) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.docs = root / "docs"
        self.docs.mkdir()
        self.chats = Shelf(root, model.url)
        self.settings = parse_settings(
            {
                "corpus": {"root": str(root / "corpus"), **({"embedder": "openai:m"} if embedder else {})},
                "embedding": {
                    "base_url": embedder.url,
                    "api_key": "x",
                    "attempts": 1,
                    "dimension": 8,
                    "price_per_million_tokens": PRICE,
                }
                if embedder
                else {},
                "llm": {"model": "m", "base_url": model.url, "attempts": 1},
                "extraction": {"workers": 1},
                "source": [
                    {"name": "docs", "uri": str(self.docs)},
                    {
                        "name": "chats",
                        "uri": str(self.chats.folder),
                        "content": "sessions",
                        "visibility": "public",
                        "user_id": "ada",
                        "org_id": "acme",
                    },
                ],
            },
            "test",
        )
        self.app: Any = None

    def write(self, name: str, text: str | bytes) -> None:
        (self.docs / name).write_bytes(text.encode() if isinstance(text, str) else text)

    @property
    def visitor(self) -> Visitor:
        return Visitor(self.app.url)

    def version(self) -> int:
        found: int = self.visitor.client.get("/api/v1/versions").json()["current"]
        return found


@contextmanager
def running_yard(root: Path, *, paid: bool = True) -> Iterator[Yard]:
    """Run a yard for the block; its embedder is scripted and has a price, or is the built-in one."""
    held = SimpleNamespace(gate=None)

    def answer(request: Request) -> Reply:
        if any(HELD in text for text in request.inputs):
            held.gate.wait(PATIENCE)
        return embeddings(request)

    with EmbeddingServer(answer) as embedder, ChatServer(session_model.answer) as model:
        yard = Yard(root, embedder if paid else None, model)
        held.gate = yard.gate
        with working_app(yard.settings) as app:
            yard.app = app
            try:
                yield yard
            finally:
                yard.gate.set()


def until(visitor: Visitor, page: Page, words: str) -> Page:
    """Load a page of a job again until it says something."""
    end = time.monotonic() + PATIENCE
    while words not in page.text:
        assert time.monotonic() < end, page.text
        time.sleep(0.05)
        page = visitor.open(page.response.url.path)
    return page


def planned(visitor: Visitor, **fields: str) -> Page:
    """Plan a run; return the plan."""
    page = visitor.send(form_with(visitor.open("/runs/plan"), "run", fields.get("run", "refresh")), **fields)
    return until(visitor, page, "Done")


def started(visitor: Visitor, plan: Page, **fields: str) -> Page:
    """Start the run of a plan; return the page of its job."""
    return visitor.send(plan.form("/runs/start"), **fields)


def refreshed(visitor: Visitor) -> Page:
    """Refresh all sources of documents; return the report of the run."""
    page = until(visitor, started(visitor, planned(visitor)), "Report of the run")
    (report,) = [link for link in page.links if link.startswith("/runs/history/")]
    return visitor.open(report)


def form_with(page: Page, name: str, value: str) -> Any:
    """Return the form of a page with this value in a hidden field."""
    (found,) = [each for each in page.forms if each.values.get(name) == value]
    return found


def without_time(text: str) -> str:
    """Return a text without the words on moments."""
    return re.sub(r"just now|\d+ \w+ ago", "", text)
