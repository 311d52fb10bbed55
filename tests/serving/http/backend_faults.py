"""Stands between the application and what it calls: passes calls on, and fails the one that a test names."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from parquetry.errors import DamagedCorpus, StorageError

ERRORS: dict[str, Callable[[], Exception]] = {
    "storage": lambda: StorageError("the corpus cannot be read: no such bucket"),
    "damage": lambda: DamagedCorpus("the corpus is damaged: 0001.parquet"),
    "system": lambda: OSError(5, "Input/output error"),
    "sqlite": lambda: sqlite3.OperationalError("disk I/O error"),
    "unforeseen": lambda: RuntimeError("a secret detail of the program"),
}

WATCHED = (
    "follower",
    "earlier",
    "tokens",
    "gate",
    "jobs",
    "reviews",
    "uploads",
    "feedback",
    "responses",
    "files",
    "stores",
    "content",
    "sessions",
)
"""parts of a service that are called for answers; a failing audit log never fails a request"""
_READER = "reader"


class Backend:
    """The parts of a running application, with calls that are recorded, or fail.

    Args:
        app: the application.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._real = app.resources
        self.calls: list[str] = []
        self._failing: tuple[str, BaseException, int | None] | None = None
        wrapped = {name: Relay(getattr(self._real, name), name, self) for name in WATCHED}
        assert set(wrapped) < {field.name for field in fields(self._real)}
        app.app.state.resources = replace(self._real, **wrapped)

    def restore(self) -> None:
        self._app.app.state.resources = self._real

    def called(self, name: str) -> None:
        """Record a call; raise if it is the failing one."""
        self.calls.append(name)
        if self._failing is None:
            return
        failing, error, number = self._failing
        if failing == name and number in (None, self.calls.count(name)):
            raise error

    @contextmanager
    def failing(self, name: str, error: BaseException, number: int | None = None) -> Any:
        """Fail calls of a name within the block: every one, or only one of them, counted from 1 in the block."""
        self._failing = (name, error, number)
        self.calls.clear()
        try:
            yield
        finally:
            self._failing = None


class Relay:
    """Object that passes calls on to another one.

    Args:
        real: the other object.
        name: its name in the records.
        backend: records calls and fails them.
    """

    def __init__(self, real: Any, name: str, backend: Backend) -> None:
        self._real, self._name, self._backend = real, name, backend

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._real, attribute)
        name = f"{self._name}.{attribute}"
        if attribute == _READER:
            return lambda *given, **named: self._readers(name, *given, **named)
        if attribute == "index":
            self._backend.called(name)
            return Relay(found, name, self._backend)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            self._backend.called(name)
            return found(*given, **named)

        return call

    @contextmanager
    def _readers(self, name: str, *given: Any, **named: Any) -> Any:
        self._backend.called(name)
        with self._real.reader(*given, **named) as reader:
            yield Relay(reader, _READER, self._backend)


def each_failing(app: Any, ask: Callable[[], Any], error: Callable[[], Exception]) -> Iterator[tuple[Any, Any]]:
    """Fail each backend call behind a request by itself, also the second of one name.

    Args:
        app: the application.
        ask: sends the request, which succeeds without a fault.
        error: makes the fault.

    Yields:
        Name and number of the call that failed, and the answer.
    """
    backend, seen = Backend(app), Counter[str]()
    try:
        assert ask().is_success
    finally:
        backend.restore()
    for name in list(backend.calls):
        seen[name] += 1
        failing = Backend(app)
        try:
            with failing.failing(name, error(), seen[name]):
                answer = ask()
            assert failing.calls.count(name) >= seen[name], (name, seen[name])
        finally:
            failing.restore()
        yield (name, seen[name]), answer
