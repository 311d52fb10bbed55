"""One batch: fetch, extract, chunk, embed, verify, write shards. Contains the failure of every single document."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from knowledge import ids
from knowledge.batches import Batch
from knowledge.changes import Change
from knowledge.embed.base import Vectors
from knowledge.errors import BrokenDocument, SkippedDocument, Verdict, classify
from knowledge.extract.detect import detect
from knowledge.model import DocumentRow, Extraction, RawDocument
from knowledge.report import Work
from knowledge.rows import Processed, new_revision, origin_removed, processed_row, refused_row
from storage.layout import shard_name
from storage.shards import RevisionChunks, Shard, StoredText, stored_text, write_chunks, write_texts
from tasks.run import Run
from tasks.workers import Prepared

log = logging.getLogger("parquetry")


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What came of a batch: rows to publish and shards to register, nothing visible yet."""

    batch: int
    rows: tuple[DocumentRow, ...]
    shards: tuple[Shard, ...]
    work: Work
    warnings: tuple[str, ...]
    seconds: dict[str, float]
    """by stage, waiting included"""


@dataclass
class _Document:
    """A document on its way through a batch."""

    change: Change
    content_hash: str = ""
    media_type: str | None = None
    future: Future[Any] | None = None
    raw: RawDocument | None = None
    prepared: Prepared | None = None
    refused: tuple[str, Verdict] | None = None
    """stage and verdict, once it is known that nothing comes of it"""


@dataclass
class _Progress:
    bytes_read: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started


def process_batch(batch: Batch, run: Run) -> BatchReport:
    """Process one batch.

    Args:
        batch: documents whose effort is `extract` or `rechunk`.
        run: in progress.

    Returns:
        A row for every document of the batch, good or not.

    Raises:
        TransientError: the embedder or the disk failed in a way that may pass: the batch may be tried again.
        ParquetryError: something that concerns the whole run.
    """
    progress = _Progress()
    documents = [_Document(change) for change in batch.changes]
    with progress.stage("fetch"):
        _start(documents, run, progress)
    with progress.stage("extract"):
        _collect(documents, run, progress)
    good = [document for document in documents if document.prepared is not None]
    revisions = [_revision(document, run) for document in good]
    with progress.stage("embed"):
        embedded = _embed(good, revisions, run, progress)
    with progress.stage("store"):
        shards, rows = _store(batch, good, embedded, run)
    rows.extend(_refused_rows([document for document in documents if document.prepared is None], run))
    price = run.embedder.price_per_million_tokens if embedded.tokens_paid else 0.0
    work = Work(
        chunks_written=sum(len(revision.chunks) for revision in embedded.revisions),
        chunks_embedded=embedded.computed,
        chunks_reused=embedded.reused,
        bytes_read=progress.bytes_read,
        tokens=embedded.tokens_paid,
        cost_usd=embedded.tokens_paid * price / 1e6,
    )
    return BatchReport(batch.number, tuple(rows), shards, work, tuple(progress.warnings), progress.seconds)


def failed_batch(batch: Batch, error: Exception, run: Run) -> BatchReport:
    """The report of a batch that failed as a whole: every document of it keeps its last good revision.

    Raises:
        ParquetryError: `error` itself, if it concerns the whole run.
    """
    verdict = classify(error)
    if verdict.fate == "stop":
        raise error
    log.warning("batch %d failed: %s", batch.number, verdict.detail)
    documents = [_Document(change, refused=("store", verdict)) for change in batch.changes]
    return BatchReport(batch.number, tuple(_refused_rows(documents, run)), (), Work(), (), {})


# --- fetch and extract


def _start(documents: Sequence[_Document], run: Run, progress: _Progress) -> None:
    """Read every document and hand it to the extraction processes."""
    stored = run.stored.texts(
        document.change.base.revision
        for document in documents
        if document.change.effort == "rechunk" and document.change.base
    )
    for document in documents:
        run.check_cancelled()
        base = document.change.base
        with _contained(document, "fetch"):
            if document.change.effort == "rechunk" and base is not None and base.revision in stored:
                _start_chunking(document, base, stored[base.revision], run)
            else:
                document.change = replace(document.change, effort="extract")
                _start_extraction(document, run, progress)


def _start_extraction(document: _Document, run: Run, progress: _Progress) -> None:
    item = document.change.item
    if item is None:
        raise BrokenDocument("vanished", "is not in its source any more")
    limit = run.settings.extraction.max_bytes
    if item.size > limit:
        raise SkippedDocument("too-large", f"has {item.size} bytes, more than {limit} (extraction.max_bytes)")
    item, content = run.sources[document.change.namespace, document.change.source].fetch(item)
    document.change = replace(document.change, item=item)
    document.content_hash = ids.content_hash(content)
    progress.bytes_read += len(content)
    filename = item.path.rpartition("/")[2]
    document.media_type = detect(content, filename)
    document.raw = RawDocument(content, filename)
    document.future = run.pool.prepare(document.raw)


def _start_chunking(document: _Document, base: DocumentRow, stored: StoredText, run: Run) -> None:
    document.content_hash, document.media_type = base.content_hash, base.media_type
    extraction = Extraction(
        text=stored.text,
        parts=stored.parts,
        headings=stored.headings,
        title=base.title,
        metadata=base.metadata,
        media_type=base.media_type or "",
        extractor=base.extractor or "",
    )
    document.prepared = Prepared(extraction, ())
    document.future = run.pool.chunk(stored.text, stored.parts, stored.headings)


def _collect(documents: Sequence[_Document], run: Run, progress: _Progress) -> None:
    """Wait for the extraction processes."""
    for document in documents:
        run.check_cancelled()
        future, known = document.future, document.prepared
        if future is None:
            continue
        document.prepared = None
        with _contained(document, "extract"):
            result = run.pool.result(future)
            prepared = result if known is None else Prepared(known.extraction, result)
            if not prepared.chunks:
                raise SkippedDocument("no-text", "has no text to index")
            _check_spans(prepared)
            document.prepared = prepared
            progress.warnings.extend(f"{_uri(document)}: {warning}" for warning in prepared.extraction.warnings)
        document.future = document.raw = None


def _check_spans(prepared: Prepared) -> None:
    length = len(prepared.extraction.text)
    for chunk in prepared.chunks:
        if not 0 <= chunk.start < chunk.end <= length:
            raise BrokenDocument("bad-span", f"chunk {chunk.index} spans {chunk.start} to {chunk.end} of {length}")


@contextmanager
def _contained(document: _Document, stage: str) -> Iterator[None]:
    """A document's failure is its own, unless it concerns the whole run."""
    try:
        yield
    except Exception as error:
        verdict = classify(error)
        if verdict.fate == "stop":
            raise
        document.refused = (stage, verdict)
        log.debug("%s refused at %s", document.change.document_id, stage, exc_info=error)


# --- embed


@dataclass(frozen=True, slots=True)
class _Embedded:
    """The chunks of a batch with their vectors."""

    revisions: list[RevisionChunks]
    vectors: Vectors
    """float32[all chunks, dimension]; zeros where there is none"""
    computed: int
    reused: int
    tokens_paid: int


def _revision(document: _Document, run: Run) -> tuple[int, list[str], list[str]]:
    """Revision, chunk texts and the texts to embed."""
    prepared = _prepared(document)
    extraction = prepared.extraction
    texts = [extraction.text[chunk.start : chunk.end] for chunk in prepared.chunks]
    template = run.settings.embedding.template
    if template == "{text}":
        return new_revision(document.change, run.stamp), texts, texts
    title = extraction.title or ""
    inputs = [
        template.format(title=title, headings=" > ".join(chunk.headings), text=text)
        for chunk, text in zip(prepared.chunks, texts, strict=True)
    ]
    return new_revision(document.change, run.stamp), texts, inputs


def _embed(
    documents: Sequence[_Document], revisions: Sequence[tuple[int, list[str], list[str]]], run: Run, progress: _Progress
) -> _Embedded:
    """Look up the vectors that exist, compute the others once each."""
    hashes = [ids.text_hashes(inputs) for _, _, inputs in revisions]
    by_hash: dict[str, str] = {}
    for keys, (_, _, inputs) in zip(hashes, revisions, strict=True):
        by_hash.update(zip(keys, inputs, strict=True))
    obtained = run.vectors.obtain(by_hash)
    vectors = np.zeros((sum(map(len, hashes)), run.embedder.dimension), np.float32)
    result, first = [], 0
    for document, (revision, texts, _), keys in zip(documents, revisions, hashes, strict=True):
        tokens = [obtained.by_hash[key].tokens for key in keys]
        for row, key in enumerate(keys, first):
            vectors[row] = obtained.by_hash[key].vector
        first += len(keys)
        without = sorted({obtained.refused[key] for key in keys if key in obtained.refused})
        progress.warnings.extend(f"{_uri(document)}: a chunk has no vector: {reason}" for reason in without)
        result.append(RevisionChunks(revision, _prepared(document).chunks, texts, tokens, keys))
    total = sum(map(len, hashes))
    return _Embedded(result, vectors, len(obtained.computed), total - len(obtained.computed), obtained.tokens_paid)


# --- store


def _store(
    batch: Batch, documents: Sequence[_Document], embedded: _Embedded, run: Run
) -> tuple[tuple[Shard, ...], list[DocumentRow]]:
    rows: list[DocumentRow] = []
    if not documents:
        return (), rows
    texts: list[StoredText] = []
    means = np.zeros((len(documents), run.embedder.dimension), np.float32)
    first = 0
    for index, (document, revision) in enumerate(zip(documents, embedded.revisions, strict=True)):
        last = first + len(revision.chunks)
        means[index] = _document_vector(embedded.vectors[first:last], revision.tokens)
        first = last
        texts.append(stored_text(revision.revision, _prepared(document).extraction))
        rows.append(_processed_row(document, revision, run))
        rows.extend(origin_removed(document.change, run.stamp))
    name, layout, embedder = shard_name(run.stamp.run_id, batch.number), run.lake.layout, run.embedder_id
    shards = (
        write_texts(layout, name, texts, embedder, means),
        write_chunks(layout, name, embedded.revisions, embedder, embedded.vectors),
    )
    keys = (key for revision in embedded.revisions for key in revision.text_hashes)
    run.vectors.stored_in(layout.shard("chunks", name), keys)
    return shards, rows


def _document_vector(vectors: Vectors, tokens: Sequence[int]) -> Vectors:
    """Mean of the chunks' vectors, weighted by their tokens, L2-normalised: float32[dimension]."""
    mean: Vectors = (vectors * np.asarray(tokens, np.float32)[:, None]).sum(axis=0)
    norm = np.linalg.norm(mean)
    return mean / norm if norm > 0 else mean


def _processed_row(document: _Document, revision: RevisionChunks, run: Run) -> DocumentRow:
    extraction = _prepared(document).extraction
    return processed_row(
        document.change,
        Processed(
            content_hash=document.content_hash,
            revision=revision.revision,
            title=extraction.title,
            media_type=extraction.media_type,
            metadata=extraction.metadata,
            extractor=extraction.extractor,
            embedder=run.embedder_id,
            fingerprint=run.fingerprints.of(extraction.media_type),
            pages=_pages(extraction),
            characters=len(extraction.text),
            chunks=len(revision.chunks),
            tokens=sum(revision.tokens),
        ),
        run.stamp,
    )


def _pages(extraction: Extraction) -> int:
    """Pages, sheets, slides or chapters; 0 for a format that has none."""
    return sum(part.kind != "document" for part in extraction.parts)


def _refused_rows(documents: Sequence[_Document], run: Run) -> list[DocumentRow]:
    rows = []
    for document in documents:
        rows.append(_refused_row(document, run))
        rows.extend(origin_removed(document.change, run.stamp))
    return rows


def _refused_row(document: _Document, run: Run) -> DocumentRow:
    stage, verdict = document.refused or ("extract", Verdict("fail", "unexpected", "nothing came of it"))
    return refused_row(
        document.change,
        stage,
        verdict,
        run.fingerprints,
        run.stamp,
        content_hash=document.content_hash,
        media_type=document.media_type,
        max_attempts=run.settings.refresh.max_attempts,
    )


def _uri(document: _Document) -> str:
    return document.change.item.uri if document.change.item else document.change.document_id


def _prepared(document: _Document) -> Prepared:
    if document.prepared is None:
        raise ValueError(f"{document.change.document_id} is not prepared")
    return document.prepared
