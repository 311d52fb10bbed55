"""The shape that a corpus on disk and one behind a service share, and what is handed to both."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from parquetry.errors import SettingsError
from parquetry.model import Visibility
from parquetry.serving.corpus_results import Added, CorpusChange, Document, DocumentChunk, SearchOptions, SearchResult

if TYPE_CHECKING:
    from parquetry.serving.search.explanations import Absence, Candidates
    from parquetry.settings.sections import Settings
    from parquetry.storage.database import Connection
    from parquetry.storage.search.filters import Filters

TEXT_TYPE = "text/markdown"
"""media type of texts that are added"""
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_LIKE_A_PATH = re.compile(r"\S*[/\\]\S+|[\w.-]+\.\w{1,5}")


@dataclass(frozen=True, slots=True)
class DocumentToAdd:
    """A document to add."""

    kind: Literal["file", "text", "url"]
    value: str
    """path, text or address"""
    name: str | None
    """identity within namespace and owner: the same again replaces; None for the file's name, or the content's hash"""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    visibility: Visibility | None = None
    shared: bool | None = None
    user_id: str | None = None
    org_id: str | None = None


def kind_of(content: str | os.PathLike[str]) -> Literal["file", "text", "url"]:
    """Return what is to be added: a path is a file, an address a page, the name of an existing file that file.

    Raises:
        SettingsError: it is a folder, or looks like the name of a file that does not exist.
    """
    if isinstance(content, str):
        if _ADDRESS.fullmatch(content.strip()):
            return "url"
        if not _LIKE_A_PATH.fullmatch(content):
            return "text"
    path = Path(content)
    if path.is_file():
        return "file"
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; make it a source in the settings, or add its files one by one")
    raise SettingsError(f"there is no file {path}; to add a text that looks like a name, save it as a file")


class CorpusBackend(Protocol):
    """A corpus for `parquetry.Corpus`, whose docstrings say what each method does."""

    @property
    def settings(self) -> Settings: ...

    @property
    def connection(self) -> Connection: ...

    @property
    def version(self) -> int: ...

    def close(self) -> None: ...

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[tuple[SearchResult, ...]]: ...

    def search_by_vector(self, vector: Sequence[float], options: SearchOptions) -> tuple[SearchResult, ...]: ...

    def candidates(self, query: str, options: SearchOptions, *, vectors: bool) -> Candidates: ...

    def why_not(self, query: str, document_id: str, options: SearchOptions) -> Absence: ...

    def documents(self, namespace: str | None) -> list[Document]: ...

    def document(self, document: str) -> Document: ...

    def chunks(self, document: str) -> list[DocumentChunk]: ...

    def entries(self, filters: Filters | None) -> list[dict[str, Any]]: ...

    def add(self, document: DocumentToAdd, *, wait: bool) -> Added: ...

    def remove(self, document: str, *, wait: bool) -> CorpusChange: ...

    def clear(self, shared: bool | None, user_id: str | None, org_id: str | None, *, wait: bool) -> CorpusChange: ...

    def rebuild(self, documents: Sequence[str], *, embeddings_only: bool, wait: bool) -> CorpusChange: ...

    def refresh(self, targets: Sequence[str], *, allow_removals: bool, wait: bool) -> CorpusChange: ...
