"""Why a document is not among the results of a search: one verdict, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from parquetry.serving.search.candidates import candidates_of
from parquetry.serving.search.document_names import named, the_one
from parquetry.serving.search.explanations import Absence, Candidates, SearchCandidate, Standing, Verdict
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.storage.database import Connection, sql_string, tuples
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.document_list import find_document
from parquetry.storage.search.filters import Caller, Filters, restrict, select_visible
from parquetry.storage.search.standings import standings

_PLAIN = ("filename", "media_type", "source", "origin", "user_id", "since", "until", "where")
"""filters with one value"""


def why_not(
    reader: Reader,
    request: SearchRequest,
    document_id: str,
    *,
    sees: Callable[[str], bool] | None = None,
) -> Absence:
    """Explain why a document is not among the results of a search, or where it is.

    A document that the caller may not see gets the answer of one that does not exist, word for word.

    Args:
        reader: reader of the corpus.
        request: the search; its filters name the caller.
        document_id: id of the document or entry.
        sees: tells whether the caller may see a namespace. None if those of the filters are all that may be seen, or
            all if there are none; otherwise a document in another one is reported as filtered out.

    Raises:
        SettingsError: as for `Reader.search`.
    """
    filters = request.filters
    with closing(reader.index.session()) as session:
        row = find_document(session, Filters(caller=filters.caller, what="both"), document_id)
        if row is None or not _may_see(row["namespace"], filters, sees):
            return _absence(reader, request, document_id, "no-such-document", f"there is no document {document_id!r}")
        if not row["revision"]:
            detail = f"it has no text to search: {row['error'] or row['status']}; correct it and refresh"
            return _absence(reader, request, document_id, "not-indexed", detail)
        conditions = tuple(_failing(session, filters, row))
    if conditions:
        detail = f"{'a filter leaves' if len(conditions) == 1 else 'filters leave'} it out: {'; '.join(conditions)}"
        absence = _absence(reader, request, document_id, "filtered", detail)
        return replace(absence, conditions=conditions)
    return _ranked(reader, request, document_id)


def visible_document(reader: Reader, caller: Caller | None, name: str) -> dict[str, Any] | None:
    """Return the one document that a name matches among those that a caller may see; None if none does.

    Raises:
        SettingsError: several match.
    """
    with closing(connect_readable(reader.snapshot)) as connection:
        if caller is not None:
            restrict(connection, caller)
        return the_one(connection, name) if named(connection, name) else None


def _may_see(namespace: str, filters: Filters, sees: Callable[[str], bool] | None) -> bool:
    if sees is not None:
        return sees(namespace)
    return not filters.namespaces or namespace in filters.namespaces


def _absence(reader: Reader, request: SearchRequest, document_id: str, verdict: Verdict, detail: str) -> Absence:
    return Absence(request.query, document_id, reader.snapshot.version, verdict, detail)


# --- filters


def _failing(session: Connection, filters: Filters, row: dict[str, Any]) -> Iterator[str]:
    """Yield the conditions that leave a document out, each tried alone."""
    place = f"document_id = {sql_string(row['document_id'])} AND namespace = {sql_string(row['namespace'])}"
    relation = f"(SELECT * FROM parts.documents WHERE {place}) AS documents"
    for name, each in _single(filters):
        select_visible(session, each, relation, ("document_id",), "explained")
        if not tuples(session, "SELECT 1 FROM explained"):
            yield name


def _single(filters: Filters) -> Iterator[tuple[str, Filters]]:
    """Yield each condition alone, with its description."""
    none = Filters(caller=filters.caller, what="both")
    if filters.what != "both":
        yield f"type: {filters.what}", replace(none, what=filters.what)
    if filters.namespaces:
        yield f"namespace: {', '.join(filters.namespaces)}", replace(none, namespaces=filters.namespaces)
    for tag in filters.tags:
        yield f"tag: {tag}", replace(none, tags=(tag,))
    if filters.any_tags:
        yield f"any tag: {', '.join(filters.any_tags)}", replace(none, any_tags=filters.any_tags)
    for name in _PLAIN:
        value = getattr(filters, name)
        if value is not None:
            yield f"{name}: {value}", replace(none, **{name: value})
    for path, text in filters.metadata:
        yield f"metadata {path}: {text}", replace(none, metadata=((path, text),))
    for each in filters.comparisons:
        values = ", ".join(map(str, each.values))
        yield f"metadata {each.path} {each.operator} {values}", replace(none, comparisons=(each,))
    if filters.subsets:
        yield "vector store", replace(none, subsets=filters.subsets)
    if filters.attributes is not None:
        yield "attributes", replace(none, attributes=filters.attributes)


# --- ranking


def _ranked(reader: Reader, request: SearchRequest, document_id: str) -> Absence:
    found = candidates_of(reader, request)
    with reader.searching(request) as (searcher, vectors, _):
        sides = standings(searcher, request.query, vectors, request.mode, document_id, context=request.context)
    places = {side: Standing(rank, score) for side, (rank, score) in sides.items()}
    own = [each for each in found.candidates if each.document_id == document_id]
    best = min(own, key=lambda each: (each.rank is None, each.rank or each.fused.rank), default=None)
    if best is None:
        verdict: Verdict = "no-candidate"
        detail = _unranked(request, places)
    else:
        verdict = best.dropped or "found"
        detail = _detail(best, found, request)
    absence = _absence(reader, request, document_id, verdict, detail)
    return replace(absence, candidate=best, vector=places.get("vector"), text=places.get("text"))


def _unranked(request: SearchRequest, places: dict[str, Standing]) -> str:
    told = []
    if request.mode != "text":
        known = places.get("vector")
        told.append(f"{known.rank:,} by vector" if known else "not at all by vector")
    if request.mode != "vector":
        known = places.get("text")
        told.append(f"{known.rank:,} by keywords" if known else "not at all by keywords, as it has none of them")
    return f"no part of it is among the best of any side: it ranks {' and '.join(told)}; ask with words of the document"


def _detail(best: SearchCandidate, found: Candidates, request: SearchRequest) -> str:
    match best.dropped:
        case None:
            return f"it is result {best.rank}"
        case "duplicate":
            return f"its text is that of {best.duplicate_of}, a better result that stands for both"
        case "same-document":
            return f"{best.duplicate_of} is the better part of the same document"
        case "beyond-candidates":
            looked = request.look.candidates(request.k)
            return f"it ranks {best.fused.rank:,}, and only the best {looked} are looked at again"
        case "diversity":
            return "better results say nearly the same, and diversify prefers what is new"
        case "beyond-k":
            return (
                f"it ranks {_place(best, found):,} of {len(found.candidates):,}; ask for more results than {request.k}"
            )
        case "threshold":
            return _threshold(best, request)


def _place(best: SearchCandidate, found: Candidates) -> int:
    better = [each for each in found.candidates if each.score > best.score and each.dropped not in _GAVE_WAY]
    return len(better) + 1


_GAVE_WAY = ("duplicate", "same-document")


def _threshold(best: SearchCandidate, request: SearchRequest) -> str:
    return f"its relevance {best.relevance or 0.0:.3f} is below the {request.min_relevance or 0.0:g} asked for"
