"""A corpus behind a service: reads and changes behind `parquetry.Corpus`, over HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from parquetry.errors import ParquetryError, SettingsError
from parquetry.serving.corpus_backend import TEXT_TYPE, DocumentToAdd
from parquetry.serving.corpus_results import (
    Added,
    CorpusChange,
    Document,
    DocumentChunk,
    LazyText,
    SearchOptions,
    SearchResult,
)
from parquetry.serving.remote_filters import filters_as_json
from parquetry.serving.search.explanations import Absence, Candidates
from parquetry.serving.service_client import ServiceClient, document_error, run_error

if TYPE_CHECKING:
    from parquetry.settings.sections import Settings
    from parquetry.storage.database import Connection
    from parquetry.storage.search.filters import Filters

QUERIES_AT_ONCE = 100
"""queries of one request"""
RESULTS_AT_ONCE = 2000
"""results of all queries of one request"""
_PAGE = 1000
"""documents or entries of one request"""
_LOOKS = ((5.0, 0.1), (60.0, 0.5), (float("inf"), 2.0))
"""seconds waited so far for a job -> seconds until the next look"""


class RemoteCorpus:
    """A corpus behind a service, as `parquetry.serving.corpus_backend.CorpusBackend`.

    Args:
        address: address of the service.
        token: token of the service; None for none.
        namespace: namespace of all requests; None for the token's own.
        timeout: seconds that a request may take.
    """

    def __init__(self, address: str, token: str | None, namespace: str | None, timeout: float) -> None:
        self._client = ServiceClient(address, token, timeout)
        self._named = namespace
        self._lock = threading.Lock()
        self._version: int | None = None

    @property
    def settings(self) -> Settings:
        self._only_on_disk("settings are")

    @property
    def connection(self) -> Connection:
        self._only_on_disk("SQL is")

    def _only_on_disk(self, what: str) -> NoReturn:
        raise SettingsError(
            f"{what} for a corpus on disk, and {self._client.address} is a service; open the corpus by its folder or "
            "address where it is kept, or search it here"
        )

    @property
    def version(self) -> int:
        if self._version is None:
            found = self._client.read("GET", f"{self._path()}/documents", params={"limit": 1})
            self._version = found["version"]
        return self._version

    def close(self) -> None:
        self._client.close()

    def _path(self) -> str:
        return f"/api/v1/knowledge/{quote(self._namespace, safe='')}"

    @property
    def _namespace(self) -> str:
        """The namespace of the requests; asked for once if the token names it."""
        with self._lock:
            if self._named is None:
                self._named = str(self._client.read("GET", "/api/knowledge/stats")["agentId"])
            return self._named

    # --- search

    def search(self, queries: Sequence[str], options: SearchOptions) -> list[tuple[SearchResult, ...]]:
        found: list[tuple[SearchResult, ...]] = []
        at_once = max(1, min(QUERIES_AT_ONCE, RESULTS_AT_ONCE // max(1, options.k)))
        for start in range(0, len(queries), at_once):
            some = list(queries[start : start + at_once])
            answer = self._retrieve({"queries": some} if len(some) > 1 else {"query": some[0]}, options)
            found += [self._results(chunks) for chunks in answer.get("results") or [answer["chunks"]]]
        return found

    def search_by_vector(self, vector: Sequence[float], options: SearchOptions) -> tuple[SearchResult, ...]:
        return self._results(self._retrieve({"vector": list(vector)}, options)["chunks"])

    def candidates(self, query: str, options: SearchOptions, *, vectors: bool) -> Candidates:
        answer = self._retrieve({"query": query, "explain": {"vector": True} if vectors else True}, options)
        return Candidates.from_json(answer["explanation"])

    def why_not(self, query: str, document_id: str, options: SearchOptions) -> Absence:
        answer = self._retrieve({"query": query, "explain": {"document_id": document_id}}, options)
        return Absence.from_json(answer["explanation"])

    def _retrieve(self, asked: Mapping[str, Any], options: SearchOptions) -> Any:
        filters, what = (
            ({}, "documents") if options.filters is None else filters_as_json(options.filters, self._namespace)
        )
        body = {
            **asked,
            "top_k": options.k,
            "mode": options.mode,
            "level": options.level,
            "rerank": options.rerank,
            "type": what,
            "filters": filters,
            "fields": "all",
            **({} if options.context is None else {"context": options.context}),
            **({} if options.min_relevance is None else {"min_score": options.min_relevance}),
        }
        answer = self._client.read("POST", f"{self._path()}/retrieve", json=body)
        self._version = answer["version"]
        return answer

    def _results(self, chunks: Sequence[Mapping[str, Any]]) -> tuple[SearchResult, ...]:
        texts = {document_id: self._text(document_id) for document_id in {each["document_id"] for each in chunks}}
        return tuple(_result(chunk, texts[chunk["document_id"]]) for chunk in chunks)

    def _text(self, document_id: str) -> LazyText:
        return LazyText(lambda: str(self._read_document(document_id)["text"]))

    # --- what it holds

    def documents(self, namespace: str | None) -> list[Document]:
        if namespace not in (None, self._namespace):
            raise SettingsError(f"this object is for namespace {self._namespace!r}; open another one for {namespace!r}")
        return [self._document(each) for each in self._pages()]

    def _pages(self) -> Iterator[Mapping[str, Any]]:
        page: str | None = None
        while True:
            place = {} if page is None else {"page": page}
            found = self._client.read("GET", f"{self._path()}/documents", params={"limit": _PAGE, **place})
            self._version = found["version"]
            yield from found["documents"]
            page = found["next"]
            if page is None:
                return

    def document(self, document: str) -> Document:
        found = dict(self._read_document(document))
        text = found.pop("text")
        return self._document(found, LazyText(lambda: str(text)))

    def _read_document(self, document_id: str) -> Any:
        return self._client.read("GET", f"{self._path()}/documents/{quote(document_id, safe='')}")

    def _document(self, found: Mapping[str, Any], text: LazyText | None = None) -> Document:
        return Document(
            document_id=found["document_id"],
            filename=found["filename"],
            source=found["source"],
            uri=found["uri"],
            media_type=found["media_type"],
            size=found["size"],
            chunks=found["chunks"],
            status=found["status"],
            metadata=found["metadata"],
            tags=tuple(found["tags"]),
            visibility=found["visibility"],
            created_at=datetime.fromisoformat(found["created_at"]),
            row=found,
            full_text=text or self._text(found["document_id"]),
        )

    def chunks(self, document: str) -> list[DocumentChunk]:
        found = self._client.read("GET", f"{self._path()}/documents/{quote(document, safe='')}/chunks")
        return [
            DocumentChunk(each["chunk_id"], each["chunk_index"], each["text"], _with_span(each))
            for each in found["chunks"]
        ]

    def entries(self, filters: Filters | None) -> list[dict[str, Any]]:
        if filters is not None:
            filters_as_json(filters, self._namespace)
        entries: list[dict[str, Any]] = []
        while True:
            params = {"namespace": self._namespace, "limit": _PAGE, "offset": len(entries)}
            found = self._client.read("GET", "/api/v1/entries", params=params)
            entries += found["entries"]
            if not found["entries"] or len(entries) >= found["total"]:
                return entries

    # --- changes

    def add(self, document: DocumentToAdd, *, wait: bool) -> Added:
        access = {
            "visibility": document.visibility,
            "shared": document.shared,
            "user_id": document.user_id,
            "org_id": document.org_id,
        }
        given: dict[str, Any] = {name: value for name, value in access.items() if value is not None}
        given |= {"metadata": dict(document.metadata), "tags": list(document.tags)}
        params = {"namespace": self._namespace, **_waiting(wait)}
        body: dict[str, Any]
        match document.kind:
            case "url":
                if document.name is not None:
                    raise SettingsError("a page is named by its address; leave name out")
                body = {"url": document.value, **given}
                answer = self._client.write("POST", "/api/knowledge/documents/url", params=params, json=body)
            case "text" if document.name is None:
                # Only this route names a text by its content.
                body = {"documents": [{"text": document.value, **given}]}
                answer = self._client.write("POST", f"{self._path()}/documents", params=_waiting(wait), json=body)
            case "text":
                body = {"content": document.value, "filename": document.name, "contentType": TEXT_TYPE, **given}
                answer = self._client.write("POST", "/api/knowledge/documents", params=params, json=body)
            case "file":
                answer = self._send_file(document, given, params)
        return self._added(document, answer, wait=wait)

    def _send_file(self, document: DocumentToAdd, given: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
        path = Path(document.value)
        fields = {"filename": document.name or path.name, **given, "metadata": json.dumps(given["metadata"])}
        try:
            with path.open("rb") as file:
                files = {"file": (document.name or path.name, file)}
                return self._client.write("POST", "/api/knowledge/documents", params=params, data=fields, files=files)
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}") from error

    def _added(self, document: DocumentToAdd, answer: Mapping[str, Any], *, wait: bool) -> Added:
        self._version = None
        name = document.name or (Path(document.value).name if document.kind == "file" else document.value[:80])
        warnings = tuple(answer.get("warnings") or ())
        if "job_id" in answer:
            if not wait:
                return Added(None, name, 0, warnings, answer["job_id"])
            done = self._finished(answer["job_id"])
            (added,) = (done["result"] or {})["documents"]
            return Added(added["document_id"], added["filename"], added["chunks"], tuple(added["warnings"]))
        if "documentId" in answer:
            return Added(answer["documentId"], answer["filename"], answer["fragmentCount"], warnings)
        (document_id,) = answer["document_ids"]
        found = self._read_document(document_id)
        return Added(document_id, found["filename"], found["chunks"], warnings)

    def remove(self, document: str, *, wait: bool) -> CorpusChange:
        path = f"{self._path()}/documents/{quote(document, safe='')}"
        answer = self._client.write("DELETE", path, params=_waiting(wait))
        if "job_id" in answer:
            return self._changed(answer, wait=wait)
        return CorpusChange(self._newest(), 1, {})

    def clear(self, shared: bool | None, user_id: str | None, org_id: str | None, *, wait: bool) -> CorpusChange:
        if user_id is not None or org_id is not None:
            raise SettingsError("the token says whose documents are cleared; leave user_id and org_id out")
        return self._job({"kind": "clear", "shared": shared}, wait=wait)

    def rebuild(self, documents: Sequence[str], *, embeddings_only: bool, wait: bool) -> CorpusChange:
        which = {"documents": list(documents)} if documents else {"all": True}
        return self._job({"kind": "reindex", "embeddings_only": embeddings_only, **which}, wait=wait)

    def refresh(self, targets: Sequence[str], *, allow_removals: bool, wait: bool) -> CorpusChange:
        job = {"kind": "refresh", "targets": list(targets), "allow_removals": allow_removals}
        return self._job(job, wait=wait)

    def _job(self, job: Mapping[str, Any], *, wait: bool) -> CorpusChange:
        body = {**job, "namespace": self._namespace}
        return self._changed(self._client.write("POST", "/api/v1/jobs", params=_waiting(wait), json=body), wait=wait)

    def _changed(self, answer: Mapping[str, Any], *, wait: bool) -> CorpusChange:
        job: Mapping[str, Any] = answer
        if "job_id" in answer:
            if not wait:
                return CorpusChange(None, 0, {}, answer["job_id"])
            job = self._finished(answer["job_id"])
        result: Mapping[str, Any] = job["result"] or {}
        self._version = None
        # A run counts documents; a removal lists them, and a clearing counts them.
        removed = result["removed"] if "removed" in result else result["documents"]["removed"]
        return CorpusChange(result["version"], len(removed) if isinstance(removed, list) else removed, result)

    def _finished(self, job_id: str) -> Mapping[str, Any]:
        """Return a job when it is done.

        Raises:
            DocumentError: it failed, with its reason.
        """
        started = time.monotonic()
        while True:
            job: Mapping[str, Any] = self._client.read("GET", f"/api/v1/jobs/{quote(job_id, safe='')}")
            if job["state"] == "completed":
                return job
            if job["state"] in ("failed", "cancelled"):
                raise _failure(job)
            waited = time.monotonic() - started
            time.sleep(next(pause for until, pause in _LOOKS if waited < until))

    def _newest(self) -> int:
        self._version = None
        return self.version


def _failure(job: Mapping[str, Any]) -> ParquetryError:
    reason, detail = job["reason"] or job["state"], job["detail"] or f"job {job['id']} was {job['state']}"
    documents = (job["result"] or {}).get("documents")
    return document_error(reason, detail) if isinstance(documents, list) else run_error(reason, detail)


def _waiting(wait: bool) -> dict[str, str]:
    return {} if wait else {"wait": "false"}


def _result(chunk: Mapping[str, Any], text: LazyText) -> SearchResult:
    fields = dict(chunk.get("fields") or {})
    row = _with_span({**fields, **{name: chunk[name] for name in ("chunk_id", "document_id", "text", "metadata")}})
    scores = {side: score for side, score in (chunk.get("scores") or {}).items() if score is not None}
    return SearchResult(
        chunk_id=chunk["chunk_id"],
        document_id=chunk["document_id"],
        text=chunk["text"],
        score=chunk["score"],
        relevance=chunk["score"],
        scores=scores,
        row=row,
        full_text=text,
    )


def _with_span(row: Mapping[str, Any]) -> dict[str, Any]:
    start, end = row.get("span") or (None, None)
    return {**row, "start": start, "end": end}
