"""A query as vectors: one by each model behind the documents that a caller may see."""

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
        queries: as typed, each once.
        searcher: knows which models the visible documents have.
        settings: name the embedders of all namespaces.

    Returns:
        Query -> id of the embedder -> float32[dimension]; nothing for a query where nothing can be compared.

    Raises:
        SettingsError: the settings do not name the model behind some of the documents.
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
        # Those of the namespaces that are searched come first: another one's may be out of reach, and is not needed.
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
