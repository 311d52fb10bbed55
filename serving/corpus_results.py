"""Records that `parquetry.Corpus` takes and returns, the same for a corpus on disk and for one behind a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from parquetry.model import Visibility
from parquetry.serving.search.summaries import summary

if TYPE_CHECKING:
    from parquetry.storage.search.filters import Filters

Mode = Literal["hybrid", "vector", "text"]
Level = Literal["chunk", "document"]


class LazyText:
    """The text of a document, read when it is first needed, and once.

    Args:
        read: reads it.
    """

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._text: str | None = None

    def __call__(self) -> str:
        if self._text is None:
            self._text = self._read()
        return self._text


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Everything about a search but the query."""

    k: int = 5
    """maximum number of results"""
    mode: Mode = "hybrid"
    filters: Filters | None = None
    context: str | None = None
    """earlier turns, or another text that weighs in"""
    min_relevance: float | None = None
    """0 to 1; results below are left out"""
    level: Level = "chunk"
    rerank: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A chunk that answers a query, and the document that it is from."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    """higher is better; comparable within one search only"""
    relevance: float | None
    """calibrated, 0 to 1, comparable between searches; None if it was not assessed"""
    scores: Mapping[str, float]
    """score on each side that found it: `vector`, `text`, and `rerank` of a reranker"""
    row: Mapping[str, Any]
    """columns of the chunk and its document; a service shows fewer"""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """1-based rank on each side that found it; empty from a service"""
    also_in: tuple[Mapping[str, Any], ...] = ()
    """columns of other chunks with the same text; empty from a service"""
    full_text: LazyText = field(default=LazyText(str), repr=False, compare=False)
    """reader of the text, for `load`"""

    @property
    def summary(self) -> str:
        """First sentences of the document; the first use reads its text."""
        return summary(self.load())

    def load(self) -> str:
        """Return the text of the whole document; the first call reads it, later ones do not."""
        return self.full_text()


@dataclass(frozen=True, slots=True, eq=False)
class Document(Mapping[str, Any]):
    """A document; as a mapping, its columns in `row`."""

    document_id: str
    filename: str
    source: str
    """name of its source; `uploads` for what was added"""
    uri: str
    media_type: str | None
    size: int
    """bytes"""
    chunks: int
    status: str
    """`indexed`, `failed` or `skipped`"""
    metadata: Mapping[str, Any]
    tags: tuple[str, ...]
    visibility: Visibility
    created_at: datetime
    """UTC, when it was first published"""
    row: Mapping[str, Any]
    """columns of the view `documents`; a service shows fewer"""
    full_text: LazyText = field(default=LazyText(str), repr=False)
    """reader of the text, for `load`"""

    @property
    def summary(self) -> str:
        """First sentences of the document; the first use reads its text."""
        return summary(self.load())

    def load(self) -> str:
        """Return the text of the document, empty if it has none; the first call reads it, later ones do not."""
        return self.full_text()

    def __getitem__(self, column: str) -> Any:
        return self.row[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self.row)

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A chunk of a document."""

    chunk_id: str
    chunk_index: int
    """0-based within the document"""
    text: str
    row: Mapping[str, Any]
    """columns of the view `chunks`, without the vector; a service shows fewer"""


@dataclass(frozen=True, slots=True)
class Added:
    """A document that was added."""

    document_id: str | None
    """None while a service has not answered"""
    filename: str
    chunks: int
    """0 until it is indexed"""
    warnings: tuple[str, ...] = ()
    job: str | None = None
    """id of the service's job, if it was not waited for"""


@dataclass(frozen=True, slots=True)
class CorpusChange:
    """Outcome of a change to a corpus."""

    version: int | None
    """version with the change; None while a service carries it out"""
    removed: int
    """number of documents removed"""
    report: Mapping[str, Any]
    """JSON of the run's report; empty while a service carries it out"""
    job: str | None = None
    """id of the service's job, if it was not waited for"""


@dataclass(frozen=True, slots=True)
class SearchedEvent:
    """A search that was answered, for a callback."""

    query: str | None
    """None for a search by vector"""
    options: SearchOptions
    results: tuple[SearchResult, ...]
    version: int
    """version of the corpus that answered"""
    seconds: float
    """duration as the caller saw it; that of a batch is split evenly"""

    @property
    def best_relevance(self) -> float | None:
        """Highest relevance of the results; None without results, or if none was assessed."""
        return max((each.relevance for each in self.results if each.relevance is not None), default=None)
