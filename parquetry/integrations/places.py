"""Places of search results as the metadata of other frameworks."""

from __future__ import annotations

import json
from typing import Any

from parquetry.serving.corpus_results import SearchResult

_COLUMNS = ("filename", "path", "uri", "title", "page", "chunk_index")
"""columns of a result that say where it stands"""


def metadata_of(result: SearchResult) -> dict[str, Any]:
    """Return the metadata of a result: that of its document, and the place to cite.

    Keys of the place win over those of the document. `source` is the address of the document, as these frameworks use
    the word; the name of the source in the settings is `source_name`.
    """
    row = result.row
    own = row.get("metadata") or {}
    place = {name: row.get(name) for name in _COLUMNS}
    return {
        **(json.loads(own) if isinstance(own, str) else own),
        **{name: value for name, value in place.items() if value is not None},
        "source": row.get("uri") or row.get("path"),
        "source_name": row.get("source"),
        "headings": list(row.get("headings") or ()),
        "tags": list(row.get("tags") or ()),
        "span": [row.get("start"), row.get("end")],
        "document_id": result.document_id,
        "chunk_id": result.chunk_id,
        "relevance": result.relevance,
    }
