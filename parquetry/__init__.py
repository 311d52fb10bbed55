"""Parquetry keeps knowledge bases fresh: sources in, Parquet shards out, searched by DuckDB.

The public Python API; `docs/python.md` has a running example of each name. Names are imported lazily, at first use. The
package itself holds what all parts need: records, ids, errors, and terminal output.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquetry.errors import (
        DocumentError,
        IndexNotWritten,
        OutageError,
        ParquetryError,
        RefusedError,
        RunSuspended,
        ServiceRefused,
        SettingsError,
        StorageError,
        TransientError,
    )
    from parquetry.flows.in_process import plan, refresh
    from parquetry.model import Item, Unlisted
    from parquetry.serving.corpus import Corpus
    from parquetry.serving.corpus_results import (
        Added,
        CorpusChange,
        Document,
        DocumentChunk,
        SearchedEvent,
        SearchResult,
    )
    from parquetry.serving.search.answer_cache import AnswerCache
    from parquetry.serving.search.answers import Shown, answer
    from parquetry.serving.search.explanations import Absence, Candidates
    from parquetry.serving.search.service import Reader, SearchRequest
    from parquetry.settings.base import Section
    from parquetry.settings.sections import Settings, load_settings
    from parquetry.sources.base import Place
    from parquetry.sources.options import options_of
    from parquetry.splitting import Piece, split
    from parquetry.storage.connect import connect
    from parquetry.storage.search.filters import Caller, Filters
    from parquetry.storage.search.searcher import Hit

__all__ = [
    "Absence",
    "Added",
    "AnswerCache",
    "Caller",
    "Candidates",
    "Corpus",
    "CorpusChange",
    "Document",
    "DocumentChunk",
    "DocumentError",
    "Filters",
    "Hit",
    "IndexNotWritten",
    "Item",
    "OutageError",
    "ParquetryError",
    "Piece",
    "Place",
    "Reader",
    "RefusedError",
    "RunSuspended",
    "SearchRequest",
    "SearchResult",
    "SearchedEvent",
    "Section",
    "ServiceRefused",
    "Settings",
    "SettingsError",
    "Shown",
    "StorageError",
    "TransientError",
    "Unlisted",
    "answer",
    "connect",
    "load_settings",
    "options_of",
    "plan",
    "refresh",
    "split",
]
_MODULES = {
    **dict.fromkeys(("Piece", "split"), "splitting"),
    **dict.fromkeys(("DocumentError", "IndexNotWritten", "OutageError", "ParquetryError", "RefusedError"), "errors"),
    **dict.fromkeys(("RunSuspended", "ServiceRefused", "SettingsError", "StorageError", "TransientError"), "errors"),
    **dict.fromkeys(("plan", "refresh"), "flows.in_process"),
    "Corpus": "serving.corpus",
    **dict.fromkeys(("Added", "CorpusChange", "Document", "DocumentChunk"), "serving.corpus_results"),
    **dict.fromkeys(("SearchResult", "SearchedEvent"), "serving.corpus_results"),
    **dict.fromkeys(("Item", "Unlisted"), "model"),
    "Place": "sources.base",
    "AnswerCache": "serving.search.answer_cache",
    **dict.fromkeys(("Shown", "answer"), "serving.search.answers"),
    **dict.fromkeys(("Absence", "Candidates"), "serving.search.explanations"),
    **dict.fromkeys(("Reader", "SearchRequest"), "serving.search.service"),
    "Section": "settings.base",
    "options_of": "sources.options",
    **dict.fromkeys(("Settings", "load_settings"), "settings.sections"),
    "connect": "storage.connect",
    **dict.fromkeys(("Caller", "Filters"), "storage.search.filters"),
    "Hit": "storage.search.searcher",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
