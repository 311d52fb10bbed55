"""The embedder behind the vectors of a corpus: as the settings name it, or as a migration of the corpus did."""

from __future__ import annotations

from collections.abc import Iterable

from parquetry.embed.base import Embedder
from parquetry.embed.registry import calls_service, embedder_behind, embedder_id, id_of, open_embedder
from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import layout_of

_migrated: dict[tuple[str, str], str] = {}
"""(root of a corpus, id of a model) -> its name in a migration"""


def corpus_embedder(model: str, names: Iterable[str], settings: Settings) -> Embedder | None:
    """Return the embedder whose vectors are stored under an id.

    Before settings are changed to follow a migration, and before a migration that they already name is switched to, the
    name is in the record of the migration.

    Args:
        model: the id.
        names: candidates, as the settings name them; checked only until one matches.
        settings: of the corpus.

    Returns:
        None if neither the settings nor a migration name it.

    Raises:
        SettingsError: a file, a package or a key of a checked candidate is missing.
        StorageError: the migrations of the corpus cannot be read.
    """
    unusable: SettingsError | None = None
    try:
        found = embedder_behind(model, names, settings.embedding, settings.hub)
    except SettingsError as error:
        found, unusable = None, error
    found = found or migrated_embedder(model, settings)
    if found is None and unusable is not None:
        raise unusable
    return found


def migrated_embedder(model: str, settings: Settings, *, local: bool = False) -> Embedder | None:
    """Return the embedder that a migration of the corpus names for an id; None if there is none.

    Args:
        model: the id.
        settings: of the corpus.
        local: True to return none that calls a service, after checking that it could.

    Raises:
        SettingsError: it cannot be opened here.
        StorageError: the migrations of the corpus cannot be read.
    """
    # Few corpora were migrated, and a search imports no Arrow otherwise.
    from parquetry.storage.lake.migrations import read_migrations

    layout = layout_of(settings.corpus.root)
    key = (layout.root, model)
    names = (_migrated[key],) if key in _migrated else read_migrations(layout).embedders
    unusable: SettingsError | None = None
    for name in names:
        try:
            if local and calls_service(name):
                embedder_id(name, settings.embedding, settings.hub)
                continue
            if id_of(name, settings.embedding, settings.hub) == model:
                _migrated[key] = name
                return open_embedder(name, settings.embedding, settings.hub)
        except SettingsError as error:
            # One that is not used any more may be gone.
            unusable = unusable or (None if name in settings.embedders else error)
    if unusable is not None:
        raise unusable
    return None
