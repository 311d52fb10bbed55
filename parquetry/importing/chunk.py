"""A chunk of a dump on its way into a corpus, and the refusal of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from parquetry.model import Access, PartKind

EXTRACTOR = "import/1"
"""extractor of imported documents"""


class RejectedRow(Exception):
    """A row of a dump that cannot be imported.

    Args:
        reason: short code in kebab-case, of `parquetry.reasons`.
        detail: one sentence for people.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected row or document of a dump."""

    place: str
    """file and row: `dump.jsonl, row 17`; or the path of a document"""
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class FieldNames:
    """Names of fields in a dump, where it uses others than the usual ones; dots lead into nested fields."""

    id: str | None = None
    text: str | None = None
    vector: str | None = None
    document: str | None = None
    """field whose values divide the chunks into documents; empty to make each row a document"""


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """The data of a chunk's row about its document."""

    filename: str
    title: str | None
    uri: str | None
    media_type: str
    modified_at: datetime | None
    access: Access | None
    """None if the row does not say who may see it"""
    metadata: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the facts as a JSON object."""
        modified = None if self.modified_at is None else self.modified_at.isoformat()
        return {**asdict(self), "modified_at": modified}

    @classmethod
    def parse(cls, told: Mapping[str, Any]) -> DocumentFacts:
        """Return the facts that `as_json` wrote."""
        access, modified = told["access"], told["modified_at"]
        return cls(
            told["filename"],
            told["title"],
            told["uri"],
            told["media_type"],
            None if modified is None else datetime.fromisoformat(modified),
            None if access is None else Access(**{**access, "tags": tuple(access["tags"])}),
            told["metadata"],
        )


@dataclass(frozen=True, slots=True)
class ImportedChunk:
    """A checked row of a dump, without its vector."""

    id: str
    """in the dump"""
    path: str
    """of its document, within the source"""
    document_id: str | None
    """in the corpus that the row was exported from; None for rows of other stores"""
    text: str
    """normalised"""
    start: int | None
    """0-based, in the text of its document; None if unknown"""
    index: int | None
    """place among the chunks of its document; None if unknown"""
    kind: PartKind
    page: int | None
    headings: tuple[str, ...]
    tokens: int | None
    facts: DocumentFacts
