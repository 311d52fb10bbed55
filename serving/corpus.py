"""The public class `parquetry.Corpus`: a corpus for programs."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from parquetry.serving.search.entry_reading import live_entries
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import Settings, load_settings, override
from parquetry.storage.database import Connection
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.filters import Filters, restrict
from parquetry.storage.search.searcher import Hit, Mode


class Corpus:
    """One version of a corpus, to search and inspect. `search` is thread-safe; `sql` is not.

    Args:
        place: folder or URL of the corpus; a settings file that names it; or settings.
        version: version number, as in `parquetry history`; None for the newest.

    Raises:
        SettingsError: the corpus or the version does not exist.
        StorageError: the corpus cannot be read.
    """

    def __init__(self, place: str | os.PathLike[str] | Settings, *, version: int | None = None) -> None:
        self.settings = _settings_of(place)
        self._reader = Reader(self.settings, version)

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index and all connections."""
        self._reader.close()

    @property
    def version(self) -> int:
        """Number of the version being read."""
        return self._reader.snapshot.version

    def search(
        self, query: str, *, k: int = 5, mode: Mode = "hybrid", filters: Filters | None = None
    ) -> tuple[Hit, ...]:
        """Return the chunks that best answer a query, best first.

        Args:
            query: query in natural language.
            k: maximum number of results.
            mode: `hybrid`, `vector`, or `text` for keyword ranking.
            filters: caller and document filters; applied before ranking.
        """
        request = SearchRequest(query, mode=mode, k=k, filters=filters or Filters())
        return self._reader.search(request).hits

    def sql(self, statement: str) -> Any:
        """Run a DuckDB SQL statement on the views and search macros of `connect`.

        It can read and write files, as DuckDB can: for operators only.

        Returns:
            DuckDB's relation: `.fetchall()`, `.df()`, `.to_arrow_table()`.
        """
        return self.connection.sql(statement)

    @property
    def connection(self) -> Connection:
        """The DuckDB connection behind `sql`."""
        return self._reader.connection

    def documents(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Return the current documents: columns of the view `documents`."""
        return self._reader.documents(namespace)

    def text(self, document: str) -> str | None:
        """Return the stored text of the one document that an id, uri or name matches; None if it has none."""
        return self._reader.text(self._reader.document(document)["document_id"])

    def entries(self, filters: Filters | None = None) -> list[dict[str, Any]]:
        """Return the live knowledge entries, most recently stated first: columns of the view `entries`.

        Args:
            filters: only `caller` is used, to limit the entries to those it may see.
        """
        with closing(connect_readable(self._reader.snapshot)) as connection:
            if filters is not None and filters.caller is not None:
                restrict(connection, filters.caller)
            return live_entries(connection)


def _settings_of(place: str | os.PathLike[str] | Settings) -> Settings:
    if isinstance(place, Settings):
        return place
    if Path(place).suffix == ".toml":
        return load_settings(place)
    return override(Settings(), {"corpus": {"root": os.fspath(place)}})
