"""Test whether an object store honours conditional writes, which concurrent publishes rely on.

A Delta commit is an object that is written only if no object has its name. "S3-compatible" does not mean that this
works: some stores ignore the condition and overwrite, some refuse it, and some check first and write then, so that of
two writers at the same moment both win.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Layout
from parquetry.storage.files.object_store import ObjectStore

_RACERS = 4
"""number of concurrent writers"""
_CONTENT = b"Shows whether this store honours conditional writes. Part of the corpus.\n"

_ONE_WRITER = (
    "two runs that publish at the same time could overwrite each other. Use a store that honours them, or set "
    "single_writer = true in [corpus] and see to it that exactly one process writes at a time"
)


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """A defect in a store's conditional writes."""

    what: str
    advice: str
    single_writer_helps: bool


def probe(layout: Layout) -> ProbeFailure | None:
    """Return the defect of a store's conditional writes, tested with concurrent writers; None if they work.

    Args:
        layout: layout of the corpus; a few objects are written beside its tables, and all but one deleted.

    Raises:
        StorageError: the store cannot be reached or written to.
    """
    found = probe_without_race(layout)
    if found is not None or layout.is_local:
        return found
    store = _store_of(layout)
    path = f"{layout.probe}-{time.time_ns():x}"
    winners = _race(store, path)
    store.delete(path)
    if winners <= 1:
        return None
    what = f"the object store let {winners} of {_RACERS} conditional writes at the same moment win"
    return ProbeFailure(what, _ONE_WRITER, single_writer_helps=True)


def probe_without_race(layout: Layout) -> ProbeFailure | None:
    """Return the defect found with one or two requests and no race: detects stores without conditional writes.

    Args:
        layout: layout of the corpus; one object is written beside its tables.

    Raises:
        StorageError: the store cannot be reached or written to.
    """
    if layout.is_local:
        return None
    store = _store_of(layout)
    outcome = store.create(layout.probe, _CONTENT)
    if outcome == "made":
        # The object exists now, whether or not it did before.
        outcome = store.create(layout.probe, _CONTENT)
    if outcome == "made":
        what = "the object store ignores conditional writes (If-None-Match)"
        return ProbeFailure(what, _ONE_WRITER, single_writer_helps=True)
    if outcome == "unsupported":
        what = "the object store refuses conditional writes (If-None-Match)"
        return ProbeFailure(what, "every commit is one: use another store", single_writer_helps=False)
    return None


def _race(store: ObjectStore, path: str) -> int:
    """Return how many of the writers of one object got a reply that they had created it."""
    start = Barrier(_RACERS)

    def write(number: int) -> bool:
        start.wait()
        return store.create(path, _CONTENT + str(number).encode()) == "made"

    with ThreadPoolExecutor(_RACERS) as racers:
        return sum(racers.map(write, range(_RACERS)))


def _store_of(layout: Layout) -> ObjectStore:
    store = filesystem_at(layout.root)
    if not isinstance(store, ObjectStore):
        raise TypeError(f"{layout.root} is no object store")
    return store
