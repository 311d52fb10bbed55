"""Registry of rerankers by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from parquetry.errors import SettingsError
from parquetry.rerank.base import Reranker
from parquetry.settings.hub import NO_HUB, HubSettings
from parquetry.settings.llm import LlmSettings
from parquetry.settings.rerank import KEY_VARIABLE, RerankSettings


@dataclass(frozen=True, slots=True)
class RerankerProvider:
    """One kind of reranker."""

    form: str
    """spelling in the settings"""
    takes: str
    """meaning of the part after the colon; empty if there is none"""
    open: Callable[[str, LlmSettings, RerankSettings, HubSettings], Reranker]


def _open_llm(_: str, settings: LlmSettings, *__: object) -> Reranker:
    from parquetry.rerank import llm

    return llm.LlmReranker(settings)


def _open_onnx(name: str, _: LlmSettings, __: RerankSettings, hub: HubSettings) -> Reranker:
    from parquetry.rerank import onnx

    return onnx.CrossEncoder(name, hub)


def _open_service(model: str, _: LlmSettings, settings: RerankSettings, __: HubSettings) -> Reranker:
    from parquetry.rerank import service

    return service.RerankService(model, settings)


PROVIDERS: dict[str, RerankerProvider] = {
    "onnx": RerankerProvider("onnx:<folder>", "a folder or a model of the hub", _open_onnx),
    "llm": RerankerProvider("llm", "", _open_llm),
    "service": RerankerProvider("service:<model>", "a model", _open_service),
}

_open: dict[tuple[object, ...], Reranker] = {}
_lock = threading.Lock()


def open_reranker(
    name: str, language_model: LlmSettings, rerank: RerankSettings, hub: HubSettings = NO_HUB
) -> Reranker:
    """Return the reranker of this name, loaded once per process however many threads ask.

    Args:
        name: `onnx:<folder>`, `onnx:<owner/name>`, `llm` or `service:<model>`.
        language_model: settings for `llm`.
        rerank: settings for `service:<model>`.
        hub: settings for a model of the hub.

    Raises:
        SettingsError: there is no such reranker, or a file, a package, a model, an address or a key is missing.
        TransientError: the hub cannot be reached.
    """
    kind, _, model = name.partition(":")
    provider = PROVIDERS.get(kind)
    if provider is None or bool(model) != bool(provider.takes) or (":" in name and not provider.takes):
        choices = ", ".join(each.form for each in PROVIDERS.values())
        raise SettingsError(f"search.rerank is {name!r}, which is not a reranker; choose one of: {choices}")
    # A changed key or endpoint in the environment requires a new client.
    environment = [os.environ.get(each) for each in ("OPENAI_BASE_URL", "OPENAI_API_KEY", KEY_VARIABLE)]
    key = (name, language_model, rerank, hub, *environment)
    with _lock:
        if key not in _open:
            _open[key] = provider.open(model, language_model, rerank, hub)
        return _open[key]
