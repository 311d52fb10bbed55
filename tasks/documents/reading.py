"""The first half of a batch: fetch its documents, have them extracted and chunked. Contains each one's failure."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

from parquetry import ids
from parquetry.errors import BrokenDocument, BudgetReached, DocumentError, SkippedDocument, Verdict, classify
from parquetry.extract.media_types import DESCRIBED_PICTURES, by_filename, with_extension
from parquetry.llm.client import Completion
from parquetry.model import ChunkSize, DocumentRow, Extraction, Item, Note, RawDocument
from parquetry.planning.costs import Cost
from parquetry.planning.diff import Change
from parquetry.planning.outage import Lost, Service, lost_to
from parquetry.planning.rows import new_revision
from parquetry.planning.slowest import SlowItem
from parquetry.storage.lake.shards import StoredText
from parquetry.tasks.documents.batch_stats import BatchStats
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.engine.workers import Prepared, WorkerPool

log = logging.getLogger("parquetry")
_LOOK_SECONDS = 0.5
"""seconds between two checks for cancellation"""
_NOTED_AT = "extract"
"""stage of notes made while a document is read; such a note stays when its text is chunked again"""


@dataclass
class ReadDocument:
    """A document on its way through a batch."""

    change: Change
    bytes_read: int = 0
    content_hash: str = ""
    media_type: str | None = None
    future: Future[Any] | None = None
    description: Future[Completion] | None = None
    """description of an image by a language model"""
    prepared: Prepared | None = None
    refused: tuple[str, Verdict] | None = None
    """stage and verdict, once the document is known to fail"""
    lost: Lost | None = None
    """failure of a service that prevents processing"""
    held: str | None = None
    """reason why the document is left unchanged: the budget, or a batch that is on its way"""
    is_awaited: bool = False
    """True if it is held for a batch alone"""
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """seconds by stage, waits included"""
    is_described: bool = False
    """True if a language model was paid for describing it: reading it again would cost that again"""

    @property
    def uri(self) -> str:
        return self.change.item.uri if self.change.item else self.change.document_id

    @property
    def chunk_size(self) -> ChunkSize | None:
        return None if self.change.item is None else self.change.item.chunk_size

    @property
    def path(self) -> str:
        return self.change.item.path if self.change.item else self.change.document_id


def read_documents(changes: Sequence[Change], run: DocumentRun, stats: BatchStats) -> list[ReadDocument]:
    """Fetch, extract and chunk documents.

    Args:
        changes: changes of effort `extract` or `rechunk`.
        run: the run in progress.
        stats: statistics of the batch.

    Returns:
        Every document, with its prepared content or with the reason for having none.

    Raises:
        ParquetryError: an error that concerns the whole run.
    """
    documents = [ReadDocument(change) for change in changes]
    try:
        with stats.stage("fetch"):
            _start(documents, run)
        stats.bytes_read += sum(document.bytes_read for document in documents)
        with stats.stage("extract"):
            _collect(documents, run, stats)
    finally:
        for document in documents:
            _count_seconds(document, run)
    return documents


def _count_seconds(document: ReadDocument, run: DocumentRun) -> None:
    """Count a document among those of the run, for its slowest."""
    if document.seconds:
        stage = max(document.seconds, key=lambda name: document.seconds[name])
        change, seconds = document.change, sum(document.seconds.values())
        run.slowest.add(SlowItem(change.namespace, change.source, change.document_id, document.uri, stage, seconds))


def _start(documents: Sequence[ReadDocument], run: DocumentRun) -> None:
    """Read every document and pass it to the extraction processes as soon as it has arrived."""
    revisions = [
        document.change.base.revision
        for document in documents
        if document.change.effort == "rechunk" and document.change.base
    ]
    stored, noted = run.stored.texts(revisions), run.stored.notes(revisions, _NOTED_AT)
    reading: list[Future[None]] = []
    try:
        for document in documents:
            run.check_cancelled()
            change = document.change
            base = change.base
            if change.effort == "rechunk" and base is not None and base.revision in stored:
                with _contained(document, "fetch"):
                    _start_chunking(document, base, stored[base.revision], noted.get(base.revision, ()), run)
            else:
                document.change = replace(change, effort="extract")
                start = partial(_read, document, run)
                reading.append(run.fetching.start(change.namespace, change.source, start))
        _await(reading, run)
    finally:
        for future in reading:
            future.cancel()


def _await(reading: Sequence[Future[None]], run: DocumentRun) -> None:
    """Wait until everything is read; raise an error that concerns the whole run, or a cancellation."""
    left = set(reading)
    while left:
        done, left = wait(left, _LOOK_SECONDS, FIRST_EXCEPTION)
        for future in done:
            future.result()
        if left:
            run.check_cancelled()


def _read(document: ReadDocument, run: DocumentRun) -> None:
    """Fetch a document and pass it to the extraction processes."""
    run.check_cancelled()
    with _contained(document, "fetch", "store"):
        item = document.change.item
        if item is None:
            raise BrokenDocument("vanished", "is not in its source any more")
        limit = run.settings.extraction.max_bytes
        if item.size > limit:
            raise SkippedDocument("too-large", f"has {item.size} bytes, more than {limit} (extraction.max_bytes)")
        run.fetching.make_room(item.size)
        with ExitStack() as unfinished:
            unfinished.callback(run.fetching.give_back, item.size)
            document.future = _start_extraction(document, item, run)
            run.reading.extracting(document.change, document.future, is_all=document.description is None)
            given_back = unfinished.pop_all()
            document.future.add_done_callback(lambda _: given_back.close())
    if document.future is None:
        run.reading.read(document.change)


def _start_extraction(document: ReadDocument, item: Item, run: DocumentRun) -> Future[Prepared]:
    change = document.change
    with _timed(document, "fetch"):
        item, content = run.fetching.fetch(change.namespace, change.source, item)
    document.change = replace(change, item=item)
    document.content_hash = ids.content_hash(content)
    document.bytes_read = len(content)
    filename = item.filename
    if item.submission is not None:
        filename = with_extension(filename, item.submission.content_type)
    # The type of the content is determined within the limits of the extraction processes.
    document.media_type = by_filename(filename)
    describer = run.describer_for(item.describe)
    if describer is not None and (image := _image_type(content, filename)) in DESCRIBED_PICTURES:
        document.media_type = image
        document.description = describer.start(content, image)
    return _pool(document, run).prepare(RawDocument(content, filename), document.chunk_size)


def _image_type(content: bytes, filename: str) -> str | None:
    from parquetry.extract.detect import image_type

    return image_type(content, filename)


def _start_chunking(
    document: ReadDocument, base: DocumentRow, stored: StoredText, noted: tuple[str, ...], run: DocumentRun
) -> None:
    document.content_hash, document.media_type = base.content_hash, base.media_type
    extraction = Extraction(
        text=stored.text,
        parts=stored.parts,
        headings=stored.headings,
        title=base.title,
        metadata=base.metadata if stored.metadata is None else stored.metadata,
        media_type=base.media_type or "",
        extractor=base.extractor or "",
        warnings=noted,
        quality=stored.quality,
    )
    document.prepared = Prepared(extraction, ())
    document.future = _pool(document, run).chunk(stored.text, stored.parts, stored.headings, document.chunk_size)
    run.reading.extracting(document.change, document.future, is_all=True)


def _collect(documents: Sequence[ReadDocument], run: DocumentRun, stats: BatchStats) -> None:
    """Wait for the extraction processes."""
    for document in documents:
        run.check_cancelled()
        future, known = document.future, document.prepared
        if future is None:
            continue
        document.prepared = None
        with _contained(document, "extract", "model" if document.description is not None else None):
            if document.description is not None:
                with _timed(document, "describe"):
                    prepared = _described(document, document.description, run, stats)
            else:
                result = _extracted(document, future, run)
                prepared = result if known is None else Prepared(known.extraction, result)
            if not prepared.chunks:
                raise SkippedDocument("no-text", "has no text to index")
            _check_spans(prepared)
            document.prepared = prepared
            stats.notes.extend(_note(document, warning, run) for warning in prepared.extraction.warnings)
        document.future = document.description = None
        run.reading.read(document.change)


def _extracted(document: ReadDocument, future: Future[Any], run: DocumentRun) -> Any:
    """Wait for the extraction of a document, and count its time."""
    result = None
    try:
        result = _pool(document, run).result(future)
    finally:
        # A process that failed or was killed leaves no time of its own.
        exact = result.seconds if isinstance(result, Prepared) else 0.0
        document.seconds["extract"] += exact or run.reading.seconds_of(future)
    return result


@contextmanager
def _timed(document: ReadDocument, stage: str) -> Iterator[None]:
    started = perf_counter()
    try:
        yield
    finally:
        document.seconds[stage] += perf_counter() - started


def _described(
    document: ReadDocument, description: Future[Completion], run: DocumentRun, stats: BatchStats
) -> Prepared:
    """Return an image's text with the language model's description before the text recognised in it, if any."""
    prepared: Prepared | None = None
    pool = _pool(document, run)
    try:
        prepared = pool.result(document.future) if document.future else None
    except SkippedDocument as error:
        if error.reason != "no-text":
            raise
    try:
        with run.reading.waits.on(document.path):
            described = description.result()
    except BrokenDocument as error:
        if prepared is None:
            raise
        stats.notes.append(_note(document, f"not described: {error.detail}", run))
        return prepared
    tokens = described.input_tokens + described.output_tokens
    cost_usd = described.cost_usd if run.settings.llm.priced else None
    stats.descriptions.append(Cost(document.change.namespace, document.change.source, "describe", tokens, cost_usd))
    document.is_described = True
    # Extractors are imported by the processes that read, and here for images that are described.
    from parquetry.extract.image import with_description

    known = prepared.extraction if prepared else None
    extraction = with_description(known, described.text, document.media_type or "")
    chunks = pool.result(pool.chunk(extraction.text, extraction.parts, extraction.headings, document.chunk_size))
    return Prepared(extraction, chunks)


def _note(document: ReadDocument, text: str, run: DocumentRun) -> Note:
    return Note(new_revision(document.change, run.stamp), document.uri, _NOTED_AT, text)


def _pool(document: ReadDocument, run: DocumentRun) -> WorkerPool:
    return run.pool_of(document.change.namespace, document.chunk_size)


def _check_spans(prepared: Prepared) -> None:
    length = len(prepared.extraction.text)
    for chunk in prepared.chunks:
        if not 0 <= chunk.start < chunk.end <= length:
            raise BrokenDocument("bad-span", f"chunk {chunk.index} spans {chunk.start} to {chunk.end} of {length}")


@contextmanager
def _contained(document: ReadDocument, stage: str, service: Service | None = None) -> Iterator[None]:
    """Record a failure as the document's or a service's; raise it if it concerns the whole run."""
    try:
        yield
    except BudgetReached as error:
        document.held = str(error)
    except Exception as error:
        verdict = classify(error)
        lost = lost_to(service, error) if service else None
        if verdict.fate == "stop":
            if lost is None:
                raise
            verdict = Verdict("retry", lost.reason, lost.detail)
        document.refused, document.lost = (stage, verdict), lost
        if isinstance(error, DocumentError):
            document.media_type = error.media_type or document.media_type
        log.debug("%s refused at %s", document.change.document_id, stage, exc_info=error)
