"""Registry of embedders by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from parquetry.embed import onnx, wordllama
from parquetry.embed.base import SERVICE_WORST, Embedder, Worst
from parquetry.embed.hub import HubCache
from parquetry.embed.prices import FREE, Price
from parquetry.errors import ParquetryError, SettingsError
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.hub import NO_HUB, HubSettings, hub_model


@dataclass(frozen=True, slots=True)
class EmbedderProvider:
    """One kind of embedder."""

    form: str
    """spelling in the settings"""
    takes: str
    """meaning of the part after the colon; empty if there is none"""
    open: Callable[[str, EmbeddingSettings, HubSettings], Embedder]
    identify: Callable[[str, EmbeddingSettings, HubSettings], str | None]
    worst: Worst
    price: Callable[[str, EmbeddingSettings], Price | None] = lambda _, __: FREE
    """None if unknown"""
    counts_tokens: bool = True
    """True if its embedders have a tokenizer"""
    calls_service: bool = False
    """True if its embedders send texts to a service"""


def _openai() -> Any:
    """Import the client of services when one is set: it needs TLS."""
    from parquetry.embed import openai

    return openai


PROVIDERS: dict[str, EmbedderProvider] = {
    "wordllama": EmbedderProvider(
        "wordllama",
        "",
        lambda _, settings, __: wordllama.WordLlamaEmbedder(settings),
        lambda _, settings, __: wordllama.embedder_id(settings),
        wordllama.WORST,
    ),
    "openai": EmbedderProvider(
        "openai:<model>",
        "a model",
        lambda model, settings, _: _openai().OpenAIEmbedder(model, settings),
        lambda model, settings, _: _openai().embedder_id(model, settings),
        SERVICE_WORST,
        lambda model, settings: _openai().price(model, settings),
        counts_tokens=False,
        calls_service=True,
    ),
    "onnx": EmbedderProvider(
        "onnx:<folder>", "a folder or a model of the hub", onnx.OnnxEmbedder, onnx.embedder_id, onnx.WORST
    ),
}

_open: dict[tuple[object, ...], Embedder] = {}
_lock = threading.Lock()


def open_embedder(name: str, settings: EmbeddingSettings, hub: HubSettings = NO_HUB) -> Embedder:
    """Return the embedder of this name, loaded once per process however many threads ask.

    Args:
        name: `wordllama`, `openai:<model>`, `onnx:<folder>` or `onnx:<owner/name>`.
        settings: of its calls.
        hub: settings for a model of the hub.

    Raises:
        SettingsError: there is no such embedder, or a file, a package or a key is missing.
        TransientError: the hub cannot be reached.
    """
    provider, model = _parse(name)
    # A changed key or endpoint in the environment requires a new client.
    key = (name, settings, hub, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY"))
    with _lock:
        if key not in _open:
            _open[key] = provider.open(model, settings, hub)
        return _open[key]


def load_ahead(names: Sequence[str], settings: EmbeddingSettings, hub: HubSettings = NO_HUB) -> None:
    """Begin to load the files of an embedder in a thread, while the caller opens what else a search needs.

    An error is raised by `open_embedder`, for who needs the embedder.

    Args:
        names: as the settings name them; with several, nobody knows yet which one is needed.
        settings: of its calls.
        hub: settings for a model of the hub; one that has to be fetched first is left to `open_embedder`.
    """

    def load() -> None:
        with suppress(ParquetryError):
            _, model = _parse(names[0])
            fetched = hub_model(model) if names[0].startswith("onnx:") else None
            if fetched is None or HubCache(fetched, hub).find() is not None:
                open_embedder(names[0], settings, hub)

    if len(names) == 1 and not calls_service(names[0]):
        threading.Thread(target=load, name="embedder", daemon=True).start()


def embedder_id(name: str, settings: EmbeddingSettings, hub: HubSettings = NO_HUB) -> str | None:
    """Return the id of the embedder that `open_embedder` would return, without loading a model or calling a service.

    Args:
        name: `wordllama`, `openai:<model>`, `onnx:<folder>` or `onnx:<owner/name>`.
        settings: of its calls.
        hub: settings for a model of the hub, which is fetched if it is not here.

    Returns:
        None if only the service knows the length of its vectors; `open_embedder(...).id` requests it.

    Raises:
        SettingsError: there is no such embedder, or a file of its folder is missing.
    """
    provider, model = _parse(name)
    return provider.identify(model, settings, hub)


def worst_of(name: str) -> Worst:
    """Return the upper bound of the tokens that the embedder of this name makes of a text.

    Raises:
        SettingsError: there is no such embedder.
    """
    return _parse(name)[0].worst


def price_of(name: str, settings: EmbeddingSettings) -> Price | None:
    """Return the price of the embedder of this name; None if unknown.

    Raises:
        SettingsError: there is no such embedder, or its key is missing.
    """
    provider, model = _parse(name)
    return provider.price(model, settings)


def counts_tokens(embedder_id: str) -> bool:
    """Return True if the embedder of an id has a tokenizer, without loading it."""
    provider = PROVIDERS.get(embedder_id.partition(":")[0])
    return provider is not None and provider.counts_tokens


def calls_service(name: str) -> bool:
    """Return True if the embedder of a name sends texts to a service."""
    provider = PROVIDERS.get(name.partition(":")[0])
    return provider is not None and provider.calls_service


def id_of(name: str, settings: EmbeddingSettings, hub: HubSettings = NO_HUB) -> str:
    """Return the id of an embedder, calling its service only if necessary.

    Args:
        name: `wordllama`, `openai:<model>`, `onnx:<folder>` or `onnx:<owner/name>`.
        settings: of its calls.
        hub: settings for a model of the hub.

    Raises:
        SettingsError: there is no such embedder, or a file, a package or a key is missing.
    """
    return embedder_id(name, settings, hub) or open_embedder(name, settings, hub).id


def embedder_behind(
    model: str, names: Iterable[str], settings: EmbeddingSettings, hub: HubSettings = NO_HUB
) -> Embedder | None:
    """Return the embedder whose vectors are stored under an id.

    Args:
        model: the id.
        names: candidates, as the settings name them; checked only until one matches.
        settings: of their calls.
        hub: settings for models of the hub.

    Returns:
        None if no candidate matches.

    Raises:
        SettingsError: a file, a package or a key of a checked candidate is missing.
    """
    for name in names:
        if id_of(name, settings, hub) == model:
            return open_embedder(name, settings, hub)
    return None


def _parse(name: str) -> tuple[EmbedderProvider, str]:
    kind, _, model = name.partition(":")
    provider = PROVIDERS.get(kind)
    if provider is None:
        choices = ", ".join(each.form for each in PROVIDERS.values())
        raise SettingsError(f"the settings name {name!r}, which is not an embedder; choose one of: {choices}")
    if bool(model) != bool(provider.takes) or (":" in name and not provider.takes):
        needs = f"needs {provider.takes} after the colon" if provider.takes else "takes nothing after its name"
        raise SettingsError(f"the settings name the embedder {name!r}, but {kind} {needs}: write {provider.form}")
    return provider, model
