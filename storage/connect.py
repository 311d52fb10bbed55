"""A DuckDB connection on a corpus, for analysts and for programs."""

from __future__ import annotations

import logging

import numpy as np

from knowledge.embed.registry import embedder_behind, id_of
from knowledge.errors import SettingsError
from knowledge.settings import Settings
from storage.database import Connection, reading
from storage.index import IndexFolder
from storage.index_views import hybrid_macro
from storage.lake import Lake, Snapshot
from storage.open_index import OpenIndex, in_memory, spaces_of
from storage.places import files_at
from storage.snapshot_views import connect_snapshot, file_views

log = logging.getLogger("parquetry")


def connect(
    root: str, *, version: int | None = None, search: bool = True, settings: Settings | None = None
) -> Connection:
    """A DuckDB connection on a corpus.

    Views: `documents` (current ones), `chunks` (visible ones, with their document), `texts`, `runs`, `failures`, and
    `document_history` (every row ever published up to the version). Macros: `search_vector(vector, k)`,
    `search_text(query, k)`, `search_hybrid(query, k)`, and the function `embed(text)`.

    Args:
        root: folder or address of the corpus.
        version: as `parquetry history` shows; None for the newest.
        search: give macros too. The newest version has an index that is brought up to date; one whose index file is
            not kept any more gets an index in memory, which takes as long as building it. False gives the views
            alone, straight on the files.
        settings: name the embedder, for `embed`; None for the defaults.

    Raises:
        SettingsError: there is no corpus at `root`, or no such version.
        StorageError: it cannot be read.
    """
    lake = Lake(root)
    snapshot = lake.snapshot(version)
    if not search:
        return connect_snapshot(snapshot)
    settings = settings or Settings()
    opened = open_index(lake, snapshot, version, settings)
    # The lease stays with the process: nobody tells when the connection is closed.
    return opened.connection


def open_index(lake: Lake, snapshot: Snapshot, version: int | None, settings: Settings) -> OpenIndex:
    """The index of a version with all views, macros and functions of `connect`; to be closed.

    Args:
        lake: the corpus.
        snapshot: of the version.
        version: that was asked for; None for the newest, which may have become a later one than the snapshot's.
        settings: of the corpus.

    Raises:
        StorageError: it cannot be built or read.
    """
    folder = IndexFolder(snapshot.layout, settings.search)
    if version is None:
        opened = folder.open(snapshot)
        if opened.version != snapshot.version:
            # Somebody has published since, or the corpus is not what it was when it was indexed.
            snapshot = lake.snapshot()
            if snapshot.version < opened.version:
                log.warning("%s; searching it as it is, without the index", rolled_back(snapshot, opened.version))
                opened.close()
                opened = in_memory(snapshot, settings.search.language)
            elif snapshot.version > opened.version:
                snapshot = lake.snapshot(opened.version)
    else:
        opened = folder.open_version(snapshot) or in_memory(snapshot, settings.search.language)
    dimensions = sorted({space.dimension for space in spaces_of(opened.connection)})
    files_at(snapshot.layout.root).lend(opened.connection)
    with reading():
        for statement in file_views(snapshot, dimensions):
            opened.connection.execute(statement)
    _add_embed(opened.connection, settings)
    return opened


def rolled_back(snapshot: Snapshot, indexed: int) -> str:
    """Say that an index is of a later version than its corpus has.

    Args:
        snapshot: the newest version.
        indexed: version of the index.
    """
    return (
        f"corpus {snapshot.layout.root} is at version {snapshot.version} and was indexed at version {indexed}: later "
        f"commits are missing from {snapshot.layout.log('documents')}, or an earlier copy was put back"
    )


def _add_embed(connection: Connection, settings: Settings) -> None:
    """Make `embed(text)` a SQL function, if the corpus has one model and the settings name it."""
    spaces = spaces_of(connection)
    if len(spaces) != 1:
        return
    (space,) = spaces

    def embed(text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        embedder = embedder_behind(space.embedder, settings.embedders, settings.embedding)
        if embedder is None:
            named = ", ".join(f"{name} is {id_of(name, settings.embedding)}" for name in settings.embedders)
            raise SettingsError(
                f"the corpus was embedded by {space.embedder}, which the settings do not name ({named}); "
                "give connect() the settings of the corpus"
            )
        return embedder.embed_query(text)

    connection.create_function("embed", embed, ["VARCHAR"], f"FLOAT[{space.dimension}]")
    connection.execute(hybrid_macro(space, embeds=True))
