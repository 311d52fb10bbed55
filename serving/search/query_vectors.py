"""Query vectors: one per embedder behind the documents that a caller may see."""

from __future__ import annotations

from collections.abc import Sequence

from parquetry.embed.base import Embedder, Vectors
from parquetry.embed.registry import embedder_behind, id_of
from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings
from parquetry.storage.search.searcher import Searcher


def query_vectors(queries: Sequence[str], searcher: Searcher, settings: Settings) -> dict[str, dict[str, Vectors]]:
    """Embed queries for a search.

    Args:
        queries: distinct queries as typed.
        searcher: searcher, which knows the embedders of the visible documents.
        settings: settings with the embedders of all namespaces.

    Returns:
        Query -> embedder id -> float32[dimension]; empty for a query with nothing to compare it with.

    Raises:
        SettingsError: the settings lack the embedder of some documents.
    """
    vectors: dict[str, dict[str, Vectors]] = {query: {} for query in queries}
    for model in searcher.embedders() if queries else ():
        embedded = _embedder(model, searcher, settings).embed_queries(queries)
        for query, vector in zip(queries, embedded, strict=True):
            vectors[query][model] = vector
    return vectors


def _embedder(model: str, searcher: Searcher, settings: Settings) -> Embedder:
    names = settings.embedders
    if len(names) > 1:
        # Embedders of the searched namespaces come first: another one may be unreachable, and is not needed.
        own = map(settings.embedder_of, searcher.namespaces_of(model))
        names = tuple(dict.fromkeys((*own, *names)))
    embedder = embedder_behind(model, names, settings.embedding)
    if embedder is None:
        named = ", ".join(f"{name} is {id_of(name, settings.embedding)}" for name in names)
        raise SettingsError(
            f"namespace {', '.join(searcher.namespaces_of(model))} was embedded by {model}, which the settings do not "
            f"name ({named}); search with --mode text, set the embedder that was used, or refresh to embed everything "
            "again"
        )
    return embedder
