"""Marks of allowances: one execution of an order alone may spend what goes with it. Small files beside the orders.

An order may be executed more than once, by workers that do not know of each other. Two marks decide who pays: one that
the run deletes when it ends an allowance, and one that the first execution to pay creates, before it looks for the
other.
"""

from __future__ import annotations

from parquetry.errors import StorageError
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake.orders import new_name


class Allowances:
    """The allowances of a corpus.

    Args:
        layout: layout of the corpus.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files = filesystem_at(layout.root)

    def place(self) -> str:
        """Begin an allowance, and return its name."""
        name = new_name()
        self._files.write(self._valid(name), lambda sink: sink.write(b"{}"))
        return name

    def claim(self, name: str) -> bool:
        """Return True if this execution may spend an allowance: no other has claimed it, and it has not ended.

        Raises:
            StorageError: the object store does not honour conditional writes.
        """
        made = self._files.create(self._claimed(name), b"{}")
        if made == "unsupported":
            raise StorageError(
                f"{self._layout.root}: the object store refuses conditional writes (If-None-Match), without which "
                "workers cannot share a budget"
            )
        if made == "there":
            return False
        # In this order: an end either finds the claim, or is found here.
        if self._is_there(self._valid(name)):
            return True
        self._files.delete(self._claimed(name))
        return False

    def end(self, name: str) -> bool:
        """End an allowance, so that no execution can claim it any more; return True if one has."""
        self._files.delete(self._valid(name))
        is_claimed = self._is_there(self._claimed(name))
        self._files.delete(self._claimed(name))
        return is_claimed

    def _valid(self, name: str) -> str:
        return self._layout.order(f"{name}-allowance")

    def _claimed(self, name: str) -> str:
        return self._layout.order(f"{name}-claimed")

    def _is_there(self, path: str) -> bool:
        try:
            with self._files.open(path):
                return True
        except FileNotFoundError:
            return False
