"""The models of a run: the embedder of each namespace, and the fingerprints of its documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

from parquetry.chunking import fingerprint as chunk
from parquetry.embed.base import Embedder
from parquetry.embed.registry import counts_tokens, id_of, open_embedder
from parquetry.extract import readers
from parquetry.ids import settings_hash
from parquetry.model import ChunkSize
from parquetry.planning.fingerprint import Fingerprints
from parquetry.settings.sections import Settings


@dataclass(frozen=True, slots=True)
class Model:
    """An embedder of a run."""

    id: str
    """id under which vectors are stored"""
    fingerprints: Fingerprints
    """fingerprints of the documents that it embeds, from the settings"""
    open: Callable[[], Embedder]
    """returns the embedder itself, loaded on first use"""


def models_of(settings: Settings, namespaces: Iterable[str]) -> dict[str, Model]:
    """Return the models of the given namespaces.

    Args:
        settings: name an embedder for each namespace.
        namespaces: namespaces of a run.

    Returns:
        Namespace -> model; namespaces with the same embedder share one.

    Raises:
        SettingsError: there is no such embedder, or it lacks a file, a package or a key.
    """

    @cache
    def model(name: str) -> Model:
        identity = id_of(name, settings.embedding, settings.hub)
        return Model(
            identity,
            fingerprints_of(settings, identity),
            partial(open_embedder, name, settings.embedding, settings.hub),
        )

    return {namespace: model(settings.embedder_of(namespace)) for namespace in sorted(set(namespaces))}


def fingerprints_of(settings: Settings, embedder_id: str) -> Fingerprints:
    """Return the fingerprints of documents of one embedder, from the settings."""
    tokenizer = embedder_id if settings.chunking.unit == "tokens" else None

    def sized(size: ChunkSize) -> str:
        own = chunk.sized(settings.chunking, size, in_tokens=counts_tokens(embedder_id))
        return chunk.fingerprint(own, embedder_id)

    @cache
    def extraction(media_type: str | None) -> str:
        if media_type is None:
            # Never read, because of its size.
            return settings_hash({"max_bytes": settings.extraction.max_bytes})
        return readers.fingerprint(media_type, settings.extraction)

    return Fingerprints(
        extraction=extraction,
        chunking=chunk.fingerprint(settings.chunking, tokenizer),
        embedding=settings_hash({"embedder": embedder_id, "template": settings.embedding.template}),
        sized=sized,
    )
