"""An embedding service that notes the requests in work at a time, and lets them wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.servers.embedding_server import Answer, EmbeddingServer, Reply, Request, embeddings
from tests.workshop import Workshop

PATIENCE = 240
"""seconds until processes are there, on a busy machine"""
PRICE = 1000.0
"""US dollars per million tokens"""
NOTE_USD = 89 * PRICE / 1e6
"""US dollars for the text of a note, whose tokens are those that `counting` counts"""


class Service:
    """The service.

    Args:
        together: number of requests that is waited for.
        seconds: longest wait for them.
        then: called once they are there, before any of them is answered.
        reply: returns the reply to a request.
    """

    def __init__(
        self, together: int, seconds: float, then: Callable[[], object] = bool, reply: Answer = embeddings
    ) -> None:
        self.most = 0
        """largest number of requests in work at a time"""
        self.met = threading.Event()
        """set once that number was in work at a time"""
        self._together, self._seconds = together, seconds
        self._then = then
        self._reply = reply
        self._now = 0
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Reply:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            then = self._then if self._now >= self._together else None
            if then is not None:
                self._then = bool
        if then is not None:
            then()
            self.met.set()
        self.met.wait(self._seconds)
        with self._lock:
            self._now -= 1
        return self._reply(request)


@contextmanager
def serving(workshop: Workshop, service: Service) -> Iterator[EmbeddingServer]:
    """Serve the embeddings of a workshop."""
    with EmbeddingServer(service.answer) as server:
        workshop.sections["corpus"] = {"embedder": "openai:test"}
        workshop.sections["embedding"] = {"base_url": server.url, "api_key": "key", "dimension": 8}
        yield server


def write_library(workshop: Workshop, documents: int) -> None:
    for number in range(documents):
        workshop.write(f"{number}.md", f"# Rule {number}\n\nCount the boards {number + 2} times.\n")


def write_notes(workshop: Workshop) -> None:
    """Write twelve notes, whose texts cost the same."""
    for number in range(12):
        workshop.write(f"{number:02}.md", f"Note {number:02}: " + f"{number:02}" * 40)


def texts_of(server: EmbeddingServer) -> list[str]:
    """Return the texts that a server embedded."""
    return [text for request in server.requests for text in request.inputs]
