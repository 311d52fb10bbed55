"""What language models answered, kept beside the tables: an answer that is there is never paid for again."""

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
from parquetry.storage.files.full_disk import disk_full
from parquetry.storage.files.layout import Layout
from parquetry.storage.files.places import files_at


class Answers:
    """The answers of a corpus, one file each. Safe to use from several threads and programs.

    Args:
        layout: of the corpus.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files = files_at(layout.root)

    def folder(self, user_id: str | None) -> str:
        """Where everything is that was answered about the sessions of a user; of None: about sessions of nobody."""
        return posixpath.join(self._layout.answers, owner_folder(user_id))

    def get(self, user_id: str | None, key: str) -> dict[str, Any] | None:
        """An answer as it was put; None if there is none. One that is damaged is as good as none.

        Args:
            user_id: whose session it is about.
            key: `parquetry.ids.answer_key`.

        Raises:
            StorageError: it is there and cannot be read.
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
        """Keep an answer, whole or not at all.

        Raises:
            StorageError: it cannot be written.
        """
        path = self._path(user_id, key)
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
