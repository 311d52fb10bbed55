"""Embedders by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from parquetry.embed import onnx, openai, wordllama
from parquetry.embed.base import Embedder, Worst
from parquetry.errors import SettingsError
from parquetry.settings.sections import EmbeddingSettings


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of embedder."""

    form: str
    """how it is written in the settings"""
    takes: str
    """what stands after the colon; empty if nothing does"""
    open: Callable[[str, EmbeddingSettings], Embedder]
    identify: Callable[[str, EmbeddingSettings], str | None]
    worst: Worst
    price: Callable[[str, EmbeddingSettings], float | None] = lambda _, __: 0.0
    """US dollars per million tokens; None if it is not known"""


PROVIDERS: dict[str, Provider] = {
    "wordllama": Provider(
        "wordllama",
        "",
        lambda _, settings: wordllama.WordLlamaEmbedder(settings),
        lambda _, settings: wordllama.embedder_id(settings),
        wordllama.WORST,
    ),
    "openai": Provider(
        "openai:<model>", "a model", openai.OpenAIEmbedder, openai.embedder_id, openai.WORST, openai.price
    ),
    "onnx": Provider("onnx:<folder>", "a folder", onnx.OnnxEmbedder, onnx.embedder_id, onnx.WORST),
}

_open: dict[tuple[object, ...], Embedder] = {}
_lock = threading.Lock()


def open_embedder(name: str, settings: EmbeddingSettings) -> Embedder:
    """The embedder of this name, loaded once per process however many threads ask.

    Args:
        name: `wordllama`, `openai:<model>` or `onnx:<folder>`.
        settings: how to call it.

    Raises:
        SettingsError: there is no such embedder, or it lacks a file, a package or a key.
    """
    provider, model = _parse(name)
    # A key or an endpoint that changes in the environment means another client.
    key = (name, settings, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY"))
    with _lock:
        if key not in _open:
            _open[key] = provider.open(model, settings)
        return _open[key]


def embedder_id(name: str, settings: EmbeddingSettings) -> str | None:
    """The id of the embedder that `open_embedder` would return, as long as that needs no model and no service.

    Args:
        name: `wordllama`, `openai:<model>` or `onnx:<folder>`.
        settings: how it would be called.

    Returns:
        None if only the service can tell how long its vectors are; `open_embedder(...).id` asks it.

    Raises:
        SettingsError: there is no such embedder, or its folder lacks a file.
    """
    provider, model = _parse(name)
    return provider.identify(model, settings)


def worst_of(name: str) -> Worst:
    """The most tokens that the embedder of this name makes of a text.

    Raises:
        SettingsError: there is no such embedder.
    """
    return _parse(name)[0].worst


def price_of(name: str, settings: EmbeddingSettings) -> float | None:
    """US dollars per million tokens of the embedder of this name; None if it is not known.

    Raises:
        SettingsError: there is no such embedder, or there is no key for it.
    """
    provider, model = _parse(name)
    return provider.price(model, settings)


def id_of(name: str, settings: EmbeddingSettings) -> str:
    """The id of an embedder, which its service is asked for only if nothing else tells it.

    Args:
        name: `wordllama`, `openai:<model>` or `onnx:<folder>`.
        settings: how it would be called.

    Raises:
        SettingsError: there is no such embedder, or it lacks a file, a package or a key.
    """
    return embedder_id(name, settings) or open_embedder(name, settings).id


def embedder_behind(model: str, names: Iterable[str], settings: EmbeddingSettings) -> Embedder | None:
    """The embedder whose vectors are kept under an id.

    Args:
        model: the id.
        names: embedders that it may be, as the settings name them; no more are looked at than it takes.
        settings: how they are called.

    Returns:
        None if it is none of them.

    Raises:
        SettingsError: one that had to be looked at lacks a file, a package or a key.
    """
    for name in names:
        if id_of(name, settings) == model:
            return open_embedder(name, settings)
    return None


def _parse(name: str) -> tuple[Provider, str]:
    kind, _, model = name.partition(":")
    provider = PROVIDERS.get(kind)
    if provider is None:
        choices = ", ".join(each.form for each in PROVIDERS.values())
        raise SettingsError(f"the settings name {name!r}, which is not an embedder; choose one of: {choices}")
    if bool(model) != bool(provider.takes) or (":" in name and not provider.takes):
        needs = f"needs {provider.takes} after the colon" if provider.takes else "takes nothing after its name"
        raise SettingsError(f"the settings name the embedder {name!r}, but {kind} {needs}: write {provider.form}")
    return provider, model
