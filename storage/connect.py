"""DuckDB connections to a corpus, for analysts and programs."""

from __future__ import annotations

import logging

import numpy as np

from parquetry.embed.registry import id_of
from parquetry.errors import IndexNotWritten, SettingsError, StorageError
from parquetry.settings.sections import Settings
from parquetry.storage.database import FAILURES, Connection, reading
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.layout import Version
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import OpenIndex, in_memory, spaces_of
from parquetry.storage.index.views import hybrid_macro
from parquetry.storage.lake.damage import may_be_damage, naming_damage
from parquetry.storage.lake.lake import SEARCHED, Lake, Snapshot
from parquetry.storage.lake.snapshot_views import connect_readable, file_views, readable
from parquetry.storage.search.corpus_embedder import corpus_embedder
from parquetry.storage.search.locked import files_of, lent, lock

log = logging.getLogger("parquetry")


def connect(
    root: str, *, version: Version | None = None, search: bool = True, settings: Settings | None = None
) -> Connection:
    """Open a DuckDB connection to a corpus.

    Views: `documents` (current ones), `chunks` (visible ones, with their document), `texts`, `notes`, `quality`,
    `pages`, `runs`, `failures`, and `document_history` (every row ever published up to the version). Macros:
    `search_vector(vector, k)`, `search_text(query, k)`, `search_hybrid(query, k)`, and the function `embed(text)`.

    Args:
        root: folder or URL of the corpus.
        version: version number as listed by `parquetry history`, or a tag; None for the newest.
        search: True to add the macros. The newest version has an index that is kept up to date; an older version
            without an index file gets an index in memory, which takes as long as building one. False gives only the
            views, straight on the files.
        settings: name the embedder for `embed`; None for the defaults.

    Raises:
        SettingsError: there is no corpus at `root`, or no such version.
        StorageError: the corpus cannot be read.
    """
    lake = Lake(root)
    snapshot = lake.snapshot(version, needed=SEARCHED)
    if not search:
        return connect_readable(snapshot)
    settings = settings or Settings()
    opened = open_index(lake, snapshot, version, settings)
    opened, _ = with_views(lake, snapshot, version, settings, opened)
    # The process keeps the lease: nothing reports that the connection was closed.
    return opened.connection


def open_index(lake: Lake, snapshot: Snapshot, version: Version | None, settings: Settings) -> OpenIndex:
    """Open the index of a version; the caller closes it.

    Args:
        lake: the corpus.
        snapshot: snapshot of the version.
        version: the requested version; None for the newest, which may by now be later than the snapshot's. If no index
            can be written, the index of an earlier version is opened.
        settings: settings of the corpus.

    Raises:
        DamagedCorpus: a file that the index is built from does not hold what was written.
        StorageError: the index cannot be built or read.
    """
    folder = IndexFolder(snapshot.layout, settings.search)
    with naming_damage(snapshot):
        if version is not None:
            return folder.open_version(snapshot) or in_memory(snapshot, settings.search.language)
        try:
            opened = folder.open(snapshot)
        except IndexNotWritten as error:
            return _open_unwritten(folder, snapshot, settings, error)
        if opened.version == snapshot.version:
            return opened
        # Another run has published since, or the corpus is not the one that was indexed.
        snapshot = lake.snapshot(needed=SEARCHED)
        if snapshot.version >= opened.version:
            return opened
        log.warning("%s; searching it as it is, without the index", rolled_back(snapshot, opened.version))
        opened.close()
        return in_memory(snapshot, settings.search.language)


def _open_unwritten(folder: IndexFolder, snapshot: Snapshot, settings: Settings, error: IndexNotWritten) -> OpenIndex:
    """Open the newest usable index while no index can be written, or build one in memory."""
    opened = folder.open_older(snapshot)
    if opened is not None:
        log.warning("%s; answering from version %d, the newest that is indexed", error, opened.version)
        return opened
    try:
        opened = in_memory(snapshot, settings.search.language)
    except FAILURES as problem:
        raise problem if isinstance(problem, StorageError) else StorageError(str(error)) from problem
    log.warning("%s; answering from the tables, which takes as long as building it", error)
    return opened


def replacement(
    lake: Lake, snapshot: Snapshot, version: Version | None, settings: Settings, failed: OpenIndex, error: Exception
) -> OpenIndex | None:
    """Open another index in place of one whose file is damaged; None if its file is intact.

    Args:
        lake: the corpus.
        snapshot: the snapshot that `failed` was opened for.
        version: the requested version.
        settings: settings of the corpus.
        failed: the index that could not be read; it is not closed.
        error: the error raised while reading it.
    """
    folder = IndexFolder(snapshot.layout, settings.search)
    if not failed.is_file or not may_be_damage(error) or not folder.is_damaged(failed, error):
        return None
    path = folder.path_of(failed)
    try:
        folder.discard(failed)
    except IndexNotWritten as problem:
        log.warning("the search index %s is damaged, and %s; answering from the tables", path, problem)
        return in_memory(snapshot, settings.search.language)
    log.warning("the search index %s was damaged; it is built again", path)
    return open_index(lake, snapshot, version, settings)


def with_views(
    lake: Lake,
    snapshot: Snapshot,
    version: Version | None,
    settings: Settings,
    opened: OpenIndex,
    *,
    locked: bool = False,
) -> tuple[OpenIndex, Snapshot]:
    """Add the views, macros and functions of `connect` to an index.

    A view of an unreadable table fails when it is used, and its error gives the reason.

    Args:
        lake: the corpus.
        snapshot: snapshot of the version.
        version: the requested version.
        settings: settings of the corpus.
        opened: the index, which is closed if another one is returned.
        locked: True for SQL of an untrusted caller (`parquetry.storage.search.locked`); leaves out `embed`, which may
            call a service.

    Returns:
        The index, and the snapshot of its version.
    """
    try:
        snapshot = snapshot_of(lake, snapshot, opened)
        _add_views(opened, snapshot, settings, locked=locked)
    except FAILURES as error:
        # Some damage makes a DuckDB instance unusable for everything else.
        another = replacement(lake, snapshot, version, settings, opened, error)
        opened.close()
        opened = another or open_index(lake, snapshot, version, settings)
        snapshot = snapshot_of(lake, snapshot, opened)
        _add_views(opened, readable(snapshot), settings, locked=locked)
    return opened, snapshot


def _add_views(opened: OpenIndex, snapshot: Snapshot, settings: Settings, *, locked: bool) -> None:
    dimensions = sorted({space.dimension for space in spaces_of(opened.connection)})
    if locked:
        snapshot = lent(opened.connection, snapshot)
    else:
        filesystem_at(snapshot.layout.root).attach(opened.connection)
    with reading():
        for statement in file_views(snapshot, dimensions):
            opened.connection.execute(statement)
    if locked:
        lock(opened.connection, files_of(snapshot))
    else:
        _add_embed(opened.connection, settings)


def snapshot_of(lake: Lake, snapshot: Snapshot, opened: OpenIndex) -> Snapshot:
    """Return the snapshot of the version that the opened index holds."""
    return snapshot if opened.version == snapshot.version else lake.snapshot(opened.version, needed=SEARCHED)


def rolled_back(snapshot: Snapshot, indexed: int) -> str:
    """Describe an index whose version is later than the newest of its corpus.

    Args:
        snapshot: the newest version.
        indexed: version of the index.
    """
    return (
        f"corpus {snapshot.layout.root} is at version {snapshot.version} and was indexed at version {indexed}: later "
        f"commits are missing from {snapshot.layout.log('documents')}, or an earlier copy was put back"
    )


def _add_embed(connection: Connection, settings: Settings) -> None:
    """Register `embed(text)` as a SQL function if the corpus has one model and the settings name it."""
    spaces = spaces_of(connection)
    if len(spaces) != 1:
        return
    (space,) = spaces

    def embed(text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        embedder = corpus_embedder(space.embedder, settings.embedders, settings)
        if embedder is None:
            named = ", ".join(
                f"{name} is {id_of(name, settings.embedding, settings.hub)}" for name in settings.embedders
            )
            raise SettingsError(
                f"the corpus was embedded by {space.embedder}, which the settings do not name ({named}); "
                "give connect() the settings of the corpus"
            )
        return embedder.embed_query(text)

    connection.create_function("embed", embed, ["VARCHAR"], f"FLOAT[{space.dimension}]")
    connection.execute(hybrid_macro(space, embeds=True))
