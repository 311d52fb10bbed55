"""Search results for programs: the JSON of a hit. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from parquetry.model import ENTRY_TYPE
from parquetry.storage.search.searcher import Hit

ALSO_IN_LISTED = 20
"""maximum number of places listed for one text; all are counted"""


def result_json(hit: Hit) -> dict[str, Any]:
    """Return one item of `results` in `parquetry search --json`."""
    row = hit.row
    return {
        **_place(row),
        "text": row["text"],
        "score": round(hit.score, 6),
        "relevance": _rounded(hit.relevance),
        "scores": {side: _rounded(hit.scores.get(side)) for side in ("vector", "text", "rerank")},
        "tags": list(row["tags"] or ()),
        "metadata": json.loads(row["metadata"] or "{}"),
        "what": "entry" if row["media_type"] == ENTRY_TYPE else "document",
        "also_in": [_place(other) for other in hit.also_in[:ALSO_IN_LISTED]],
        "also_in_count": len(hit.also_in),
    }


def _place(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the location of a chunk."""
    return {
        "chunk_id": row["chunk_id"],
        "document_id": row["document_id"],
        "uri": row["uri"],
        "path": row["path"],
        "filename": row["filename"],
        "title": row["title"],
        "namespace": row["namespace"],
        "source": row["source"],
        "modified_at": row["modified_at"].isoformat(),
        "page": row["page"],
        "headings": list(row["headings"] or ()),
        "span": [row["start"], row["end"]],
    }


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 6)
