"""Hits of searches, for tests of their presentation."""

from parquetry.storage.search.searcher import Hit
from tests.records import THEN


def hit(text="One. Two.", start=0, index=0, score=0.5, scores=None, **columns):
    """Return a hit; every field has a default, and a test sets the ones that it is about."""
    row = {
        "chunk_id": f"{columns.get('document_id', 'd')}-chunk-{index}",
        "document_id": "d",
        "uri": "file:///docs/leave.pdf",
        "path": "people/leave.pdf",
        "filename": "leave.pdf",
        "title": "Leave",
        "namespace": "default",
        "source": "handbook",
        "media_type": "application/pdf",
        "modified_at": THEN,
        "tags": [],
        "metadata": "{}",
        "kind": "page",
        "page": 3,
        "headings": ["Leave", "Moving"],
        "start": start,
        "end": start + len(text),
        "text": text,
        "chunk_index": index,
        "tokens": 3,
    }
    return Hit(score, scores or {"text": score}, {**row, **columns})
