"""Relevance judgements (qrels) out of what users judged, document by document. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from parquetry.serving.service.feedback import Feedback

JudgedQuery = tuple[str, str]
"""namespace and text"""


def relevance_judgements(judged: Iterable[Feedback], documents: Collection[str]) -> dict[JudgedQuery, dict[str, int]]:
    """Return query -> document id -> 1 for relevant, 0 for irrelevant.

    Of several judgements of one passage the last one counts; one on the passage itself outranks one that follows from a
    good answer. A document is relevant if one of its passages is, and a judgement of the whole document replaces the
    earlier ones of its passages.

    Args:
        judged: judgements, in the order in which they were made.
        documents: ids of the documents that there are; judgements of others are left out.
    """
    ordered = list(judged)
    own = [each for each in ordered if each.answer_id is None]
    found: dict[JudgedQuery, dict[str, dict[str | None, bool]]] = {}
    for each in (*(each for each in ordered if each.answer_id is not None), *own):
        of_query = found.setdefault((each.namespace, each.query), {})
        if each.document_id in documents:
            if each.chunk_id is None:
                of_query[each.document_id] = {}
            of_query.setdefault(each.document_id, {})[each.chunk_id] = each.relevant
    return {
        query: {document: int(any(passages.values())) for document, passages in of_query.items()}
        for query, of_query in found.items()
    }
