"""Places in a settings file: relative ones are resolved against the file, wherever the command runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from parquetry.settings.hub import hub_model

if TYPE_CHECKING:
    from parquetry.settings.sections import Settings


def anchored(settings: Settings, folder: Path) -> Settings:
    """Return settings with relative places resolved against the folder of their file."""

    def anchor(place: str) -> str:
        if "://" in place or Path(place).is_absolute():
            return place
        return os.path.normpath(folder / place)

    def anchor_model(name: str) -> str:
        kind, _, model = name.partition(":")
        if kind != "onnx" or not model:
            return name
        named = hub_model(model, folder)
        return f"onnx:{anchor(model) if named is None else named.address}"

    corpus = settings.corpus.model_copy(
        update={"root": anchor(settings.corpus.root), "embedder": anchor_model(settings.corpus.embedder)}
    )
    search, sessions = settings.search, settings.sessions
    prompts = {
        name: anchor(place) for name in ("distill_prompt", "compare_prompt") if (place := getattr(sessions, name))
    }
    places = {
        name: anchor(place)
        for name in ("index_folder", "log", "calibration")
        if (place := getattr(search, name)) is not None
    }
    if search.rerank:
        places["rerank"] = anchor_model(search.rerank)
    textfile = settings.observability.textfile
    watched = settings.observability.model_copy(update={"textfile": anchor(textfile)} if textfile is not None else {})
    state, uploads, cache = settings.serve.state, settings.uploads.uri, settings.hub.cache
    namespaces = tuple(each.model_copy(update={"embedder": anchor_model(each.embedder)}) for each in settings.namespace)
    sources = tuple(source.model_copy(update={"uri": anchor(source.uri)}) for source in settings.source)
    return settings.model_copy(
        update={
            "corpus": corpus,
            "search": search.model_copy(update=places),
            "sessions": sessions.model_copy(update=prompts),
            "serve": settings.serve.model_copy(update={"state": anchor(state)} if state is not None else {}),
            "uploads": settings.uploads.model_copy(update={"uri": anchor(uploads)} if uploads is not None else {}),
            "hub": settings.hub.model_copy(update={"cache": anchor(cache)} if cache is not None else {}),
            "observability": watched,
            "namespace": namespaces,
            "source": sources,
        }
    )
