"""A corpus for programs: what `parquetry.Corpus` is."""

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
    """One version of a corpus, to search and to look into. Several threads may search; `sql` is for one at a time.

    Args:
        place: folder or address of the corpus; a settings file, which names it; or settings.
        version: as `parquetry history` shows; None for the newest.

    Raises:
        SettingsError: there is no corpus, or no such version.
        StorageError: it cannot be read.
    """

    def __init__(self, place: str | os.PathLike[str] | Settings, *, version: int | None = None) -> None:
        self.settings = _settings_of(place)
        self._reader = Reader(self.settings, version)

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index and every connection."""
        self._reader.close()

    @property
    def version(self) -> int:
        """Number of the version that is read."""
        return self._reader.snapshot.version

    def search(
        self, query: str, *, k: int = 5, mode: Mode = "hybrid", filters: Filters | None = None
    ) -> tuple[Hit, ...]:
        """The chunks that answer best, best first.

        Args:
            query: in words.
            k: results at most.
            mode: `hybrid`, `vector` or `text`, which ranks by keywords.
            filters: who asks and which documents may answer; they apply before ranking.
        """
        request = SearchRequest(query, mode=mode, k=k, filters=filters or Filters())
        return self._reader.search(request).hits

    def sql(self, statement: str) -> Any:
        """Run a statement of DuckDB's SQL on the views and search macros of `connect`.

        It can read and write files, as DuckDB can: an operator's tool.

        Returns:
            DuckDB's relation: `.fetchall()`, `.df()`, `.to_arrow_table()`.
        """
        return self.connection.sql(statement)

    @property
    def connection(self) -> Connection:
        """The DuckDB connection behind `sql`."""
        return self._reader.connection

    def documents(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """The current documents: columns of the view `documents`."""
        return self._reader.documents(namespace)

    def text(self, document: str) -> str | None:
        """The stored text of the one document that an id, uri or name means; None if it has none."""
        return self._reader.text(self._reader.document(document)["document_id"])

    def entries(self, filters: Filters | None = None) -> list[dict[str, Any]]:
        """The live knowledge entries, those that were said last first: columns of the view `entries`.

        Args:
            filters: whose `caller` may see them; its other fields are not looked at.
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
