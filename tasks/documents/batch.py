"""One batch: fetch, extract, chunk, embed, verify, write shards. Contains the failure of every single document."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parquetry import ids
from parquetry.embed.base import Vectors
from parquetry.errors import ServiceRefused, TransientError, Verdict, WorkerLost
from parquetry.model import DocumentRow, Extraction, Note
from parquetry.planning.batches import Batch
from parquetry.planning.costs import Cost, shared, summed, total_usd
from parquetry.planning.outage import Key, Lost, Service, lost_to
from parquetry.planning.report import Work
from parquetry.planning.rows import (
    Processed,
    new_revision,
    origin_removed,
    processed_row,
    refused_row,
    unfinished_revision,
)
from parquetry.storage.lake.shards import (
    RevisionChunks,
    Shard,
    StoredText,
    stored_text,
    write_chunks,
    write_notes,
    write_texts,
)
from parquetry.tasks.documents.batch_report import BatchReport
from parquetry.tasks.documents.batch_stats import BatchStats
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.reading import ReadDocument, read_documents
from parquetry.tasks.documents.row_changes import extracted_metadata
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.engine.base import BatchHandler, verdict_of_failed_batch
from parquetry.tasks.engine.workers import Prepared
from parquetry.telemetry.tracing import batch_attributes, span

log = logging.getLogger("parquetry")
Owner = tuple[str, str]
"""namespace and name of a source"""


def document_batches(run: DocumentRun) -> BatchHandler[Batch, BatchReport]:
    """Return the batch handler of a refresh."""
    return BatchHandler(
        lambda batch: process_batch(batch, run),
        lambda batch, error: failed_batch(batch, error, run),
        run.settings.refresh.workers,
        run,
    )


def process_batch(batch: Batch, run: DocumentRun) -> BatchReport:
    """Process one batch.

    Args:
        batch: documents of one model, whose effort is `extract` or `rechunk`.
        run: the run in progress.

    Returns:
        A row for every document of the batch, successful or not, except those that the budget holds back.

    Raises:
        TransientError: the embedder or the disk failed temporarily: the batch may be retried.
        ParquetryError: an error that concerns the whole run.
    """
    with span("parquetry.batch", batch_attributes(batch.number, len(batch.changes)), run.trace):
        return _processed(batch, run)


def _processed(batch: Batch, run: DocumentRun) -> BatchReport:
    stats = BatchStats()
    model = run.models[batch.changes[0].namespace]
    run.check_served(model)
    if not run.affords(model):
        held = frozenset((change.namespace, change.document_id) for change in batch.changes)
        return BatchReport(batch.number, (), (), Work(), (), {}, held=held)
    documents = read_documents(batch.changes, run, stats)
    good = [document for document in documents if document.prepared is not None]
    revisions = [_revision(document, run) for document in good]
    with run.slots:
        with stats.stage("embed"):
            try:
                embedded = _embed(batch, good, revisions, model, run, stats)
            except ServiceRefused as error:
                run.turned_away(model, error)
                raise
        stats.notes = _without_unfinished(stats.notes, documents, run)
        with stats.stage("store"):
            shards, rows = _store(batch, good, embedded, model, run)
            if stats.notes:
                name = run.shard_name(batch.number)
                shards = (*shards, write_notes(run.lake.layout, name, stats.notes, run.stamp))
    nothing = [document for document in documents if document.prepared is None and document.held is None]
    rows.extend(_refused_rows(nothing, run))
    costs = summed((*_embedding_costs(embedded, model), *stats.descriptions))
    work = Work(
        chunks_written=sum(
            len(revision.chunks)
            for document, revision in zip(good, embedded.revisions, strict=True)
            if document.held is None
        ),
        chunks_embedded=embedded.computed,
        chunks_reused=embedded.reused,
        bytes_read=stats.bytes_read,
        tokens=embedded.tokens_paid,
        description_tokens=sum(cost.tokens for cost in stats.descriptions),
        cost_usd=total_usd(costs),
    )
    held = frozenset(_key(document) for document in documents if document.held and not document.is_awaited)
    awaited = frozenset(_key(document) for document in documents if document.is_awaited)
    notes, lost = tuple(stats.notes), _lost(documents)
    return BatchReport(batch.number, tuple(rows), shards, work, notes, stats.seconds, lost, held, costs, awaited)


def failed_batch(batch: Batch, error: Exception, run: DocumentRun) -> BatchReport:
    """Return the report of a batch that failed as a whole: every document in it keeps its last good revision.

    Raises:
        ParquetryError: `error` itself, if it concerns the whole run.
    """
    service: Service = "workers" if isinstance(error, WorkerLost) else "embedding"
    lost = lost_to(service, error) if isinstance(error, TransientError | ServiceRefused) else None
    verdict = verdict_of_failed_batch(batch.number, error, is_outage=lost is not None)
    if lost is not None:
        verdict = replace(verdict, reason=lost.reason)
    # No single document is known to be at fault.
    documents = [ReadDocument(change, refused=("store", verdict), lost=lost) for change in batch.changes]
    return BatchReport(batch.number, tuple(_refused_rows(documents, run)), (), Work(), (), {}, _lost(documents))


def _without_unfinished(notes: Sequence[Note], documents: Sequence[ReadDocument], run: DocumentRun) -> list[Note]:
    """Return the notes on documents that this batch finishes."""
    unfinished = {new_revision(each.change, run.stamp) for each in documents if each.held is not None}
    return [note for note in notes if note.revision not in unfinished]


def _lost(documents: Sequence[ReadDocument]) -> dict[Key, Lost]:
    return {_key(document): document.lost for document in documents if document.lost is not None}


def _key(document: ReadDocument) -> Key:
    return document.change.namespace, document.change.document_id


# --- embed


@dataclass(frozen=True, slots=True)
class _Embedded:
    """The chunks of a batch with their vectors."""

    revisions: list[RevisionChunks]
    vectors: Vectors
    """float32[all chunks, dimension]; zeros where there is no vector"""
    computed: int
    reused: int
    tokens_paid: int
    owners: Mapping[Owner, int]
    """source of the first document with each computed text -> tokens of these texts"""


def _revision(document: ReadDocument, run: DocumentRun) -> tuple[int, list[str], list[str]]:
    """Return revision, chunk texts and the texts to embed."""
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
    batch: Batch,
    documents: Sequence[ReadDocument],
    revisions: Sequence[tuple[int, list[str], list[str]]],
    model: Model,
    run: DocumentRun,
    stats: BatchStats,
) -> _Embedded:
    """Look up existing vectors, and compute each missing one once."""
    hashes = [ids.text_hashes(inputs) for _, _, inputs in revisions]
    by_hash: dict[str, str] = {}
    patient: dict[str, Owner] = {}
    texts_of = zip(documents, hashes, revisions, strict=True)
    # A budget buys the texts of described images first: held back, they would be described and paid for again.
    for document, keys, (_, _, inputs) in sorted(texts_of, key=lambda each: not each[0].is_described):
        by_hash.update(zip(keys, inputs, strict=True))
        if not document.is_described:
            for key in keys:
                patient.setdefault(key, (document.change.namespace, document.change.source))
    obtained = run.vectors_of(model).obtain(by_hash, patient, run.ledger, run.text_lanes.get(model.id))
    if obtained.unpaid:
        run.out_of_budget(model)
    result: list[RevisionChunks] = []
    rows: list[Vectors] = []
    owners: Counter[Owner] = Counter()
    computed = set(obtained.computed)
    for document, (revision, texts, _), keys in zip(documents, revisions, hashes, strict=True):
        chunks = _prepared(document).chunks
        mine = computed.intersection(keys)
        owners[document.change.namespace, document.change.source] += sum(obtained.by_hash[key].tokens for key in mine)
        computed -= mine
        unpaid = [obtained.unpaid[key] for key in keys if key in obtained.unpaid]
        document.is_awaited = not unpaid and not obtained.awaited.isdisjoint(keys)
        if unpaid or document.is_awaited:
            document.held = unpaid[0] if unpaid else "a batch is on its way"
            # Chunks that were paid for are stored nevertheless, so that their vectors are found.
            revision = unfinished_revision(document.change, run.stamp, batch.number)
            paid = [place for place, key in enumerate(keys) if key in obtained.by_hash]
            chunks, texts = tuple(chunks[place] for place in paid), [texts[place] for place in paid]
            keys = [keys[place] for place in paid]
        without = sorted({obtained.refused[key] for key in keys if key in obtained.refused})
        if document.held is None:
            stats.notes.extend(
                Note(revision, document.uri, "embed", f"a chunk has no vector: {reason}") for reason in without
            )
        rows.extend(obtained.by_hash[key].vector for key in keys)
        result.append(RevisionChunks(revision, chunks, texts, [obtained.by_hash[key].tokens for key in keys], keys))
    vectors = np.array(rows, np.float32).reshape(len(rows), model.open().dimension)
    reused = len(rows) - len(obtained.computed)
    return _Embedded(result, vectors, len(obtained.computed), reused, obtained.tokens_paid, owners)


def _embedding_costs(embedded: _Embedded, model: Model) -> Iterator[Cost]:
    """Yield what embedding a batch cost, by source."""
    price = model.open().price_per_million_tokens if embedded.tokens_paid else 0.0
    for (namespace, source), tokens in shared(embedded.tokens_paid, embedded.owners).items():
        yield Cost(namespace, source, "embed", tokens, None if price is None else tokens * price / 1e6)


# --- store


def _store(
    batch: Batch, documents: Sequence[ReadDocument], embedded: _Embedded, model: Model, run: DocumentRun
) -> tuple[tuple[Shard, ...], list[DocumentRow]]:
    rows: list[DocumentRow] = []
    if not embedded.vectors.size:
        return (), rows
    texts: list[StoredText] = []
    means: list[Vectors] = []
    first = 0
    for document, revision in zip(documents, embedded.revisions, strict=True):
        last = first + len(revision.chunks)
        vectors, first = embedded.vectors[first:last], last
        if document.held is not None:
            continue
        means.append(document_vector(vectors, revision.tokens))
        handed_in = document.change.item is not None and document.change.item.submission is not None
        texts.append(stored_text(revision.revision, _prepared(document).extraction, with_metadata=handed_in))
        rows.append(_processed_row(document, revision, model, run))
        rows.extend(origin_removed(document.change, run.stamp))
    name, layout = run.shard_name(batch.number), run.lake.layout
    chunks = write_chunks(layout, name, embedded.revisions, model.id, embedded.vectors)
    shards = (write_texts(layout, name, texts, model.id, np.array(means, np.float32)), chunks) if texts else (chunks,)
    keys = (key for revision in embedded.revisions for key in revision.text_hashes)
    run.vectors_of(model).stored_in(layout.shard("chunks", name), keys)
    return shards, rows


def document_vector(vectors: Vectors, tokens: Sequence[int]) -> Vectors:
    """Return the mean of the chunks' vectors, weighted by tokens, L2-normalised: float32[dimension]."""
    mean: Vectors = (vectors * np.asarray(tokens, np.float32)[:, None]).sum(axis=0)
    norm = np.linalg.norm(mean)
    return mean / norm if norm > 0 else mean


def _processed_row(document: ReadDocument, revision: RevisionChunks, model: Model, run: DocumentRun) -> DocumentRow:
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
            embedder=model.id,
            fingerprint=model.fingerprints.of(extraction.media_type, document.chunk_size),
            pages=_pages(extraction),
            characters=len(extraction.text),
            chunks=len(revision.chunks),
            tokens=sum(revision.tokens),
        ),
        run.stamp,
    )


def _pages(extraction: Extraction) -> int:
    """Return the number of pages, sheets, slides or chapters; 0 for a format without any."""
    return sum(part.kind != "document" for part in extraction.parts)


def _refused_rows(documents: Sequence[ReadDocument], run: DocumentRun) -> list[DocumentRow]:
    rows = []
    for document in documents:
        rows.append(_refused_row(document, run))
        rows.extend(origin_removed(document.change, run.stamp))
    return rows


def _refused_row(document: ReadDocument, run: DocumentRun) -> DocumentRow:
    stage, verdict = document.refused or ("extract", Verdict("fail", "unexpected", "nothing came of it"))
    known = extracted_metadata(run, [document.change])
    return refused_row(
        document.change,
        stage,
        verdict,
        run.models[document.change.namespace].fingerprints,
        run.stamp,
        content_hash=document.content_hash,
        media_type=document.media_type,
        max_attempts=run.settings.refresh.max_attempts,
        extracted=known.get(document.change.base.revision) if document.change.base else None,
    )


def _prepared(document: ReadDocument) -> Prepared:
    if document.prepared is None:
        raise ValueError(f"{document.change.document_id} is not prepared")
    return document.prepared
