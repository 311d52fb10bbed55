"""The HTTP application on a real socket in a thread of this process, with or without a process of its own for jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from parquetry.serving.http.app import create_app
from parquetry.serving.jobs.context import JobContext
from parquetry.serving.jobs.execute import lanes_of, stop_all
from parquetry.serving.jobs.store import JobStore
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.store import UploadStore


class RunningApp:
    """An application that answers.

    Args:
        settings: settings of the service; its port is chosen.
    """

    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings)
        config = uvicorn.Config(self.app, host="127.0.0.1", port=0, log_config=None, server_header=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        end = time.monotonic() + 60
        while not self._server.started:
            assert time.monotonic() < end
            assert self._thread.is_alive(), "the application did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    @property
    def resources(self) -> Any:
        return self.app.state.resources

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Return a client of the application."""
        sent = dict(headers) if token is None else {"Authorization": f"Bearer {token}", **headers}
        return httpx.Client(base_url=self.url, headers=sent, timeout=60, trust_env=False)


@contextmanager
def running_app(settings: Settings) -> Iterator[RunningApp]:
    """Run an application for the block."""
    app = RunningApp(settings)
    app.start()
    try:
        yield app
    finally:
        app.stop()


@contextmanager
def working_app(settings: Settings) -> Iterator[RunningApp]:
    """Run an application for the block, and carry out its jobs in threads of this process."""
    with running_app(settings) as app:
        state = app.resources.state
        context = JobContext(settings, state, JobStore(state), UploadStore(settings))
        lanes = lanes_of(context, by_prefect=False)
        for lane in lanes:
            lane.start()
        try:
            yield app
        finally:
            assert stop_all(context, lanes, 60)
            context.store.close()
