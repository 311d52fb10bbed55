"""Language-model answers, stored beside the tables: a stored answer is never paid for again."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquetry.errors import StorageError
from parquetry.ids import owner_folder
from parquetry.storage.files.durable import PRIVATE, make_folder
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.full_disk import disk_full
from parquetry.storage.files.layout import Layout


class Answers:
    """The answers of a corpus, one file each. Safe to use from several threads and programs.

    Args:
        layout: layout of the corpus.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files = filesystem_at(layout.root)

    def folder(self, user_id: str | None) -> str:
        """Return the folder of all answers about the sessions of a user; None for sessions without a user."""
        return posixpath.join(self._layout.answers, owner_folder(user_id))

    def get(self, user_id: str | None, key: str) -> dict[str, Any] | None:
        """Return a stored answer; None if there is none, or if it is damaged.

        Args:
            user_id: user of the session that the answer is about.
            key: `parquetry.ids.answer_key`.

        Raises:
            StorageError: the answer exists and cannot be read.
        """
        path = self._path(user_id, key)
        try:
            with self._files.open(path) as stream:
                found = json.loads(stream.read())
        except FileNotFoundError:
            return None
        except ValueError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error}") from error
        return found if isinstance(found, dict) else None

    def put(self, user_id: str | None, key: str, answer: Mapping[str, Any]) -> None:
        """Store an answer, completely or not at all.

        Raises:
            StorageError: the answer cannot be written.
        """
        self.put_at(f"{owner_folder(user_id)}/{key}", answer)

    def put_at(self, place: str, answer: Mapping[str, Any]) -> None:
        """Store an answer, completely or not at all.

        Args:
            place: folder of the owner and key, as `folder/key`.
            answer: the answer.

        Raises:
            StorageError: the answer cannot be written.
        """
        path = posixpath.join(self._layout.answers, f"{place}.json")
        content = json.dumps(dict(answer), ensure_ascii=False).encode("utf-8", "surrogatepass")

        def fill(sink: pa.NativeFile) -> None:
            sink.write(content)

        try:
            if self._layout.is_local:
                make_folder(self._layout.root)
                make_folder(Path(path).parent, PRIVATE)
            self._files.write(path, fill)
        except OSError as error:
            what = f"{path} cannot be written"
            raise disk_full(error, path, what) or StorageError(f"{what}: {error}") from error

    def _path(self, user_id: str | None, key: str) -> str:
        return posixpath.join(self.folder(user_id), f"{key}.json")
