"""Upkeep of files and vector stores: what expired or was deleted goes, and what got lost is done again."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Sequence

from parquetry.errors import ParquetryError
from parquetry.serving.files.model import SHOWN, KeptFile, StoreFile, VectorStore, now
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.attaching import detach, follow

log = logging.getLogger("parquetry")
INTERVAL = 30.0
"""seconds between two rounds"""
UPLOAD_SECONDS = 3600
"""seconds after which an upload in parts expires, as OpenAI states it"""
_ALL = 1_000_000_000
_DAY_US = 24 * 3600 * 1_000_000


class Upkeep:
    """Thread that looks after the files and stores of a service; several processes may do so at once.

    Args:
        resources: parts of the service.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stores-upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End before the next round."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        told = ""
        while not self._stopping.wait(INTERVAL):
            try:
                look_after(self._resources)
                told = ""
            except (ParquetryError, OSError) as error:
                # The next round tries again.
                if str(error) != told:
                    log.warning("files and vector stores cannot be looked after: %s", error)
                told = str(error)


def look_after(resources: Resources) -> None:
    """Carry out one round.

    Raises:
        StorageError: the state of the service or the corpus cannot be read or written.
    """
    for store_id, attachments in _by_store(resources.stores.in_work()).items():
        store = resources.stores.of(store_id)
        if store is not None:
            follow(resources, store, attachments)
    for store in resources.stores.to_expire():
        if empty_store(resources, store):
            resources.stores.mark_expired(store.id)
    for store_id in resources.stores.to_remove():
        gone = resources.stores.of(store_id)
        if gone is not None and empty_store(resources, gone):
            resources.stores.remove(store_id)
    for file in resources.files.to_remove():
        finish_file(resources, file)
    _remove_old_uploads(resources)
    resources.stores.forget_removed(now() - _DAY_US)
    resources.content.delete(*resources.content.left_behind(resources.files.known()))


def empty_store(resources: Resources, store: VectorStore) -> bool:
    """Have all files of a store removed; return True once none is left."""
    present = resources.stores.page(store.id, _ALL, newest_first=False)
    detach(resources, store, present)
    return not present and not resources.stores.in_work([store.id])


def detach_everywhere(resources: Resources, file: KeptFile) -> list[str]:
    """Have a file removed from all stores; return the jobs that do so.

    Args:
        resources: parts of the service.
        file: the file, which is deleted.
    """
    jobs = []
    for store_id, attachments in _by_store(resources.stores.of_files([file.id])).items():
        store = resources.stores.of(store_id)
        present = [each for each in attachments if each.status in SHOWN]
        if store is not None and present:
            jobs += detach(resources, store, present)
        jobs += [each.job for each in attachments if each.status == "removing" and each.job is not None]
    return jobs


def finish_file(resources: Resources, file: KeptFile) -> bool:
    """Delete the bytes and the row of a deleted file once it is in no store; return True then."""
    detach_everywhere(resources, file)
    for store_id, attachments in _by_store(resources.stores.of_files([file.id])).items():
        store = resources.stores.of(store_id)
        if store is not None:
            follow(resources, store, attachments)
    if any(each.status != "removed" for each in resources.stores.of_files([file.id])):
        return False
    resources.content.delete(file.id)
    resources.files.remove(file.id)
    return True


def _remove_old_uploads(resources: Resources) -> None:
    """Remove the parts of uploads that expired, and the rows of those that ended long ago."""
    for upload_id in resources.files.uploads_before(now() - UPLOAD_SECONDS * 1_000_000):
        parts = list(resources.files.parts(upload_id))
        resources.content.delete(*parts)
        resources.files.remove_parts(upload_id)
    for upload_id in resources.files.uploads_before(now() - 7 * _DAY_US):
        resources.files.remove_upload(upload_id)


def _by_store(attachments: Sequence[StoreFile]) -> dict[str, list[StoreFile]]:
    found: dict[str, list[StoreFile]] = defaultdict(list)
    for each in attachments:
        found[each.store_id].append(each)
    return found
