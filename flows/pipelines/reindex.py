"""Request to rebuild documents whatever their hashes say."""

from __future__ import annotations

from parquetry.errors import SettingsError
from parquetry.flows.pipelines.documents import Request
from parquetry.importing.chunk import EXTRACTOR
from parquetry.nearest import hint
from parquetry.planning.diff import Reindex
from parquetry.planning.match import named
from parquetry.settings.sections import Settings
from parquetry.sources.registry import scope_of_source
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.scopes import scope_of_uploads
from parquetry.storage.lake.current import current_rows, published_sources
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread


def reindex_request(
    settings: Settings, documents: tuple[str, ...], namespace: str | None, *, embeddings_only: bool
) -> Request:
    """Return a request to rebuild documents regardless of their hashes.

    Args:
        settings: settings of the corpus.
        documents: ids, uris, or globs over names and paths; empty for all.
        namespace: only documents of this namespace.
        embeddings_only: True to recompute vectors from the stored text; False to extract and chunk again, reusing
            existing vectors.

    Raises:
        SettingsError: a name matches no document.
    """
    published = reread(lambda: current_rows(Lake(settings.corpus.root).snapshot()))
    present = [row for row in published if namespace in (None, row.namespace)]
    # Of what was imported there is no source; `reindex --embedder` works on the stored chunks.
    current = [row for row in present if row.extractor != EXTRACTOR]
    if not present and namespace is not None:
        known = {row.namespace for row in published}
        raise SettingsError(
            f"no document of {settings.corpus.root} is in namespace {namespace!r}; {hint(namespace, known)}"
        )
    by_id = {row.document_id: [row] for row in current}
    chosen: set[tuple[str, str]] = set()
    sources: set[tuple[str, str]] = set()
    for name in documents or ("*",):
        # Thousands of ids are looked up; a glob is compared with every document.
        found = by_id.get(name) or named(current, name)
        if not found and named(present, name):
            raise SettingsError(
                f"{name!r} was imported and has no source to be read again; import it again, or migrate with --embedder"
            )
        if not found:
            raise SettingsError(
                f"no document of {settings.corpus.root} is named {name!r}; `parquetry documents` lists them"
            )
        chosen.update((row.namespace, row.document_id) for row in found)
        sources.update((row.namespace, row.source) for row in found)
    force = Reindex("rechunk" if embeddings_only else "extract", lambda row: (row.namespace, row.document_id) in chosen)
    return Request(
        settings,
        namespace=namespace,
        force=force,
        scopes=tuple(
            scope_of_uploads(settings, each[0])
            if each[1] == UPLOADS
            else scope_of_source(settings, *each, lambda: published_sources(settings.corpus.root))
            for each in sorted(sources)
        ),
        kind="reindex",
        recompute_vectors=embeddings_only,
    )
