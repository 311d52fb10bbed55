"""Stands between the application and what it calls: passes calls on, and fails the one that a test names."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

WATCHED = ("follower", "tokens", "gate", "jobs", "uploads", "feedback", "files", "stores", "content")
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
        self._failing: tuple[str, BaseException] | None = None
        wrapped = {name: Relay(getattr(self._real, name), name, self) for name in WATCHED}
        assert set(wrapped) < {field.name for field in fields(self._real)}
        app.app.state.resources = replace(self._real, **wrapped)

    def restore(self) -> None:
        self._app.app.state.resources = self._real

    def called(self, name: str) -> None:
        """Record a call; raise if it is the failing one."""
        self.calls.append(name)
        if self._failing is not None and self._failing[0] == name:
            raise self._failing[1]

    @contextmanager
    def failing(self, name: str, error: BaseException) -> Any:
        """Fail every call of a name within the block."""
        self._failing = (name, error)
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
