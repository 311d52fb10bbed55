"""Query vectors: one per embedder behind the documents that a caller may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parquetry.embed.base import Embedder, Vectors
from parquetry.embed.registry import id_of
from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings
from parquetry.storage.search.corpus_embedder import corpus_embedder
from parquetry.storage.search.query_words import CONTEXT_SHARE
from parquetry.storage.search.searcher import Searcher


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a request that make its vector."""

    query: str
    context: str | None = None
    """text that weighs in"""
    vector: tuple[float, ...] | None = None
    """vector of the caller's own, instead of that of the query"""
    compared: bool = True
    """False if the request compares no vectors"""


def vectors_of(asked: Sequence[Asked], searcher: Searcher, settings: Settings) -> list[dict[str, Vectors]]:
    """Return the vectors to search by for each request: embedder id -> float32[dimension].

    A context has `CONTEXT_SHARE` of the vector, before it is normalised again. All texts are embedded together.

    Args:
        asked: the requests.
        searcher: searcher, which knows the embedders of the visible documents.
        settings: settings with the embedders of all namespaces.

    Raises:
        SettingsError: the settings lack the embedder of some documents; or a vector is not one, or has a dimension that
            no embedder of the visible documents has.
    """
    compared = [each for each in asked if each.compared]
    texts = [each.query for each in compared if each.vector is None]
    texts += [each.context for each in compared if each.context]
    embedded = query_vectors(list(dict.fromkeys(texts)), searcher, settings)
    found: list[dict[str, Vectors]] = []
    for each in asked:
        vectors: dict[str, Vectors] = {}
        if each.compared:
            vectors = embedded[each.query] if each.vector is None else _given(each.vector, searcher)
            if each.context:
                vectors = {model: _mixed(vector, embedded[each.context][model]) for model, vector in vectors.items()}
        elif each.vector is not None:
            raise SettingsError("a keyword search compares no vectors; search by a vector with mode vector or hybrid")
        found.append(vectors)
    return found


def _given(values: Sequence[float], searcher: Searcher) -> dict[str, Vectors]:
    """Return a caller's vector for each embedder of its dimension."""
    vector = np.asarray(values, np.float32)
    if not np.isfinite(vector).all() or not vector.any():
        raise SettingsError("the vector to search by needs finite numbers, at least one of them not 0")
    dimensions = searcher.dimensions()
    if dimensions and len(vector) not in dimensions.values():
        known = ", ".join(f"{model} ({dimension})" for model, dimension in dimensions.items())
        raise SettingsError(
            f"the vector to search by has {len(vector)} dimensions, but no documents have such vectors; "
            f"those that may answer were embedded by {known}"
        )
    return {model: vector for model, dimension in dimensions.items() if dimension == len(vector)}


def _mixed(query: Vectors, context: Vectors) -> Vectors:
    mixed = (1 - CONTEXT_SHARE) * _unit(query) + CONTEXT_SHARE * _unit(context)
    return _unit(mixed)


def _unit(vector: Vectors) -> Vectors:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


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
    embedder = corpus_embedder(model, names, settings)
    if embedder is None:
        named = ", ".join(f"{name} is {id_of(name, settings.embedding, settings.hub)}" for name in names)
        raise SettingsError(
            f"namespace {', '.join(searcher.namespaces_of(model))} was embedded by {model}, which the settings do not "
            f"name ({named}); search with --mode text, set the embedder that was used, or refresh to embed everything "
            "again"
        )
    return embedder
