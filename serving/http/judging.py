"""Judgements on what a search found, of all dialects: on results that the judge may see, and on no others."""

from __future__ import annotations

from contextlib import closing

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import Forbidden, NotVisible
from parquetry.serving.search.service import Reader
from parquetry.serving.service import documents as shown
from parquetry.serving.service.feedback import JudgedResult
from parquetry.serving.service.resources import Resources
from parquetry.storage.database import tuples

_LONGEST = 80
"""characters of an id that a message repeats"""


def demand_judging(parts: Resources) -> None:
    """Refuse judgements to a service that changes nothing. They need the right to search: no document changes.

    Raises:
        Forbidden: the service is read-only.
    """
    if parts.settings.serve.read_only:
        raise Forbidden("read-only", "this service changes nothing; ask its operator for one that does")


def result_to_judge(
    reader: Reader, caller: Principal, document_id: str, chunk_id: str | None = None, namespace: str | None = None
) -> JudgedResult:
    """Return a document, or one of its chunks, to be judged.

    Args:
        reader: reader of the newest version.
        caller: who judges.
        document_id: id of the document.
        chunk_id: id of the chunk; None for the whole document.
        namespace: the namespace that it has to be in; None for any.

    Raises:
        NotVisible: it does not exist for the caller.
    """
    row = shown.document(reader, caller, document_id, namespace)
    if chunk_id is not None:
        statement = "SELECT 1 FROM parts.every_chunk WHERE document_id = $1 AND namespace = $2 AND chunk_id = $3"
        with closing(reader.index.session()) as session:
            if not tuples(session, statement, [document_id, row["namespace"], chunk_id]):
                raise NotVisible("no-such-chunk", f"no chunk {chunk_id[:_LONGEST]!r}")
    return JudgedResult(row["namespace"], document_id, chunk_id)
