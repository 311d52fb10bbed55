"""Orders for workers that share only the corpus with a run, and their answers: small JSON files beside the tables."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from parquetry.errors import SettingsError, TransientError
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout

KEPT = timedelta(days=7)
"""time after which an order of a run that was killed is deleted"""
_LARGEST = 256 * 1024 * 1024
"""bytes; an order of 10,000 documents takes some 20 MB"""
_STAMP = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """The outcome of an order: one of both."""

    report: str | None = None
    """the report of its batch"""
    stop: str | None = None
    """an error that concerns the whole run, as one line"""


class Orders:
    """The orders and answers of a corpus.

    Args:
        layout: layout of the corpus.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files = filesystem_at(layout.root)

    def place(self, content: str) -> str:
        """Store an order, and return its name."""
        name = new_name()
        self._write(name, content)
        return name

    def read(self, name: str) -> str:
        """Return an order.

        Raises:
            SettingsError: this process does not see it, so it has another corpus than the run.
        """
        content = self._read(name)
        if content is None:
            raise SettingsError(
                f"order {name} is not in {self._layout.orders}; give the workers the settings of the run: the same "
                "corpus.root, and access to it"
            )
        return content

    def answer(self, name: str, answer: OrderAnswer) -> None:
        """Store the answer to an order."""
        self._write(_answered(name), json.dumps(asdict(answer)))

    def answer_to(self, name: str) -> OrderAnswer | None:
        """Return the answer to an order; None if there is none."""
        content = self._read(_answered(name))
        return None if content is None else OrderAnswer(**json.loads(content))

    def delete(self, name: str) -> None:
        """Delete an order and its answer."""
        for each in (name, _answered(name)):
            self._files.delete(self._layout.order(each))

    def delete_abandoned(self) -> None:
        """Delete what runs left that were killed long ago."""
        oldest = f"{datetime.now(UTC) - KEPT:{_STAMP}}"
        for entry in self._files.entries(self._layout.orders):
            if entry.name < oldest:
                self._files.delete(self._layout.order(entry.name.removesuffix(".json")))

    def _write(self, name: str, content: str) -> None:
        self._files.write(self._layout.order(name), lambda sink: sink.write(content.encode()))

    def _read(self, name: str) -> str | None:
        try:
            with self._files.open(self._layout.order(name)) as stream:
                content: bytes = stream.read(_LARGEST + 1)
        except FileNotFoundError:
            return None
        if len(content) > _LARGEST:
            raise TransientError("too-large", f"order {name} has more than {_LARGEST} bytes")
        return content.decode()


def new_name() -> str:
    """Return a new name of an order, by which what was abandoned is found."""
    return f"{datetime.now(UTC):{_STAMP}}-{secrets.token_hex(8)}"


def _answered(name: str) -> str:
    return f"{name}-answer"
