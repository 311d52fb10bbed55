"""One batch of a migration: chunks from what is stored, vectors of the new model, shards that stay invisible."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import numpy as np

from parquetry import ids
from parquetry.embed.base import Vectors
from parquetry.errors import BrokenDocument, ServiceRefused, TransientError, Verdict, classify
from parquetry.model import Chunk, Failure, Note
from parquetry.planning.costs import Cost, shared, summed, total_usd
from parquetry.planning.outage import Lost, lost_to
from parquetry.planning.report import Work
from parquetry.storage.files.layout import entries_shard_name, shard_name
from parquetry.storage.lake.candidates import Unbuilt
from parquetry.storage.lake.shards import RevisionChunks, StoredText, write_chunks, write_notes, write_texts
from parquetry.tasks.documents.batch import document_vector
from parquetry.tasks.documents.migration_run import MigrationRun
from parquetry.tasks.documents.models import Model
from parquetry.tasks.engine.base import BatchHandler, verdict_of_failed_batch

log = logging.getLogger("parquetry")
_NOTED_AT = "extract"


@dataclass(frozen=True, slots=True)
class MigrationBatch:
    """Revisions of one model that are built together: documents, or entries, whose shards stay apart."""

    number: int
    documents: tuple[Unbuilt, ...]
    host: str = ""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The result of a batch."""

    batch: int
    documents: int = 0
    """number of revisions that were built"""
    held: int = 0
    """number of revisions left out because the budget is reached"""
    work: Work = field(default_factory=Work)
    costs: tuple[Cost, ...] = ()
    failures: tuple[Failure, ...] = ()
    lost: Lost | None = None
    """failure of the embedding service, because of which nothing of the batch was built"""


@dataclass
class _Building:
    """A revision on its way through a batch."""

    document: Unbuilt
    revision: int
    """of the candidate"""
    text: StoredText
    chunks: Sequence[Chunk]
    notes: Sequence[str]
    texts: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    """texts as sent to the embedder"""
    keys: list[str] = field(default_factory=list)
    """hashes of the inputs"""
    held: bool = False


def into_migration_batches(
    documents: Iterable[Unbuilt], model_of: Mapping[str, Model], characters: int, most: int
) -> tuple[MigrationBatch, ...]:
    """Group revisions into batches.

    Args:
        documents: revisions without a candidate.
        model_of: namespace -> model of its documents.
        characters: characters that fill a batch.
        most: revisions that fill a batch.
    """
    groups: dict[tuple[str, bool], list[Unbuilt]] = defaultdict(list)
    for document in documents:
        groups[model_of[document.namespace].id, document.entry].append(document)
    batches: list[list[Unbuilt]] = []
    for _, group in sorted(groups.items()):
        filled = characters
        for document in sorted(group, key=lambda each: (each.namespace, each.source, each.uri)):
            if filled >= characters or len(batches[-1]) >= most:
                batches.append([])
                filled = 0
            batches[-1].append(document)
            filled += document.characters
    return tuple(MigrationBatch(number, tuple(batch)) for number, batch in enumerate(batches))


def migration_batches(run: MigrationRun, first: int = 0) -> BatchHandler[MigrationBatch, BuildReport]:
    """Return the handler of a migration's batches.

    Args:
        run: the run in progress.
        first: number of batches that the run had before, whose shards have their names.
    """
    return BatchHandler(
        lambda batch: build_batch(batch, run, first),
        lambda batch, error: _failed_batch(batch, error, run),
        run.settings.refresh.workers,
        run,
    )


def build_batch(batch: MigrationBatch, run: MigrationRun, first: int = 0) -> BuildReport:
    """Build the candidates of a batch.

    Args:
        batch: revisions of one model.
        run: the run in progress.
        first: added to the number of the batch in the names of shards.

    Raises:
        TransientError: the embedder or the disk failed temporarily: the batch may be retried.
        ParquetryError: an error that concerns the whole run.
    """
    run.check_cancelled()
    model = run.models[batch.documents[0].namespace]
    run.check_served(model)
    if not run.affords(model):
        return BuildReport(batch.number, held=len(batch.documents))
    building, failures = _prepared(batch.documents, run)
    for each in building:
        _set_inputs(each, run.settings.embedding.template)
    with run.slots:
        return replace(_stored(batch.number + first, building, model, run), failures=tuple(failures))


def _failed_batch(batch: MigrationBatch, error: Exception, run: MigrationRun) -> BuildReport:
    """Return the report of a batch that failed as a whole; what is stored of it is found again."""
    lost = lost_to("embedding", error) if isinstance(error, TransientError | ServiceRefused) else None
    verdict = verdict_of_failed_batch(batch.number, error, is_outage=lost is not None)
    if lost is not None:
        verdict = replace(verdict, reason=lost.reason)
    failures = tuple(_failure(document, "store", verdict, run) for document in batch.documents)
    return BuildReport(batch.number, failures=failures, lost=lost)


# --- from what is stored


def _prepared(documents: Sequence[Unbuilt], run: MigrationRun) -> tuple[list[_Building], list[Failure]]:
    """Return the stored texts with the chunks that the migration wants, and what could not be read."""
    texts = run.stored.texts(each.revision for each in documents)
    kept = run.stored.chunks(each.revision for each in documents if not each.rechunk)
    notes = run.stored.notes((each.revision for each in documents), _NOTED_AT)
    divided: dict[int, Future[tuple[Chunk, ...]]] = {}
    for each in documents:
        if each.rechunk and each.revision in texts:
            text = texts[each.revision]
            divided[each.revision] = run.pool_of(each.namespace).chunk(text.text, text.parts, text.headings)
    building, failures = [], []
    for each in documents:
        try:
            chunks = _chunks(each, texts, kept, divided, run)
        except BrokenDocument as error:
            failures.append(_failure(each, "chunk", classify(error), run))
            continue
        revision = each.revision ^ run.migration.mask
        stored = replace(texts[each.revision], revision=revision)
        building.append(_Building(each, revision, stored, chunks, notes.get(each.revision, ())))
    return building, failures


def _chunks(
    document: Unbuilt,
    texts: Mapping[int, StoredText],
    kept: Mapping[int, tuple[Chunk, ...]],
    divided: Mapping[int, Future[tuple[Chunk, ...]]],
    run: MigrationRun,
) -> tuple[Chunk, ...]:
    if document.revision not in texts:
        raise BrokenDocument("damaged", "its stored text cannot be read")
    if not document.rechunk:
        chunks = kept.get(document.revision, ())
        if len(chunks) != document.chunks:
            raise BrokenDocument("damaged", "its stored chunks cannot be read")
        return chunks
    run.check_cancelled()
    return run.pool_of(document.namespace).result(divided[document.revision])


def _set_inputs(each: _Building, template: str) -> None:
    text = each.text.text
    each.texts = [text[chunk.start : chunk.end] for chunk in each.chunks]
    each.inputs = each.texts
    if template != "{text}" and not each.document.entry:
        each.inputs = [
            template.format(title=each.document.title, headings=" > ".join(chunk.headings), text=said)
            for chunk, said in zip(each.chunks, each.texts, strict=True)
        ]
    each.keys = ids.text_hashes(each.inputs)


# --- embed and store


def _stored(number: int, building: Sequence[_Building], model: Model, run: MigrationRun) -> BuildReport:
    """Embed what has no vector of the model yet, and register the candidates."""
    texts = {key: text for each in building for key, text in zip(each.keys, each.inputs, strict=True)}
    try:
        obtained = run.vectors_of(model).obtain(texts, ledger=run.ledger)
    except ServiceRefused as error:
        run.turned_away(model, error)
        raise
    if obtained.unpaid:
        run.out_of_budget(model)
    owners: Counter[tuple[str, str]] = Counter()
    computed = set(obtained.computed)
    revisions: list[RevisionChunks] = []
    vectors: list[Vectors] = []
    notes: list[Note] = []
    for each in building:
        mine = computed.intersection(each.keys)
        owners[each.document.namespace, each.document.source] += sum(obtained.by_hash[key].tokens for key in mine)
        computed -= mine
        each.held = any(key in obtained.unpaid for key in each.keys)
        places = [place for place, key in enumerate(each.keys) if key not in obtained.unpaid]
        keys = [each.keys[place] for place in places]
        without = sorted({obtained.refused[key] for key in keys if key in obtained.refused})
        said = [(_NOTED_AT, note) for note in each.notes]
        said += [("embed", f"a chunk has no vector: {reason}") for reason in without]
        notes += [Note(each.revision, each.document.uri, stage, text) for stage, text in said if not each.held]
        # Chunks of a held document are stored for their vectors, under a revision that nothing will ever name.
        revision = ids.revision(each.document.document_id, run.stamp.run_id) if each.held else each.revision
        chosen = [each.chunks[place] for place in places], [each.texts[place] for place in places]
        revisions.append(RevisionChunks(revision, *chosen, [obtained.by_hash[key].tokens for key in keys], keys))
        vectors.append(np.array([obtained.by_hash[key].vector for key in keys], np.float32))
    _register(number, building, revisions, vectors, notes, model, run)
    costs = summed(_costs(obtained.tokens_paid, owners, model))
    written = sum(len(each.chunks) for each in building if not each.held)
    work = Work(
        chunks_written=written,
        chunks_embedded=len(obtained.computed),
        chunks_reused=max(0, written - len(obtained.computed)),
        tokens=obtained.tokens_paid,
        cost_usd=total_usd(costs),
    )
    held = sum(each.held for each in building)
    return BuildReport(number, len(building) - held, held, work, costs)


def _register(
    number: int,
    building: Sequence[_Building],
    revisions: Sequence[RevisionChunks],
    vectors: Sequence[Vectors],
    notes: Sequence[Note],
    model: Model,
    run: MigrationRun,
) -> None:
    """Write the shards of a batch and register them."""
    whole = {each.revision for each in building if not each.held}
    texts_missing, chunks_missing = run.missing_in("texts", whole), run.missing_in("chunks", whole)
    layout = run.lake.layout
    is_entry = any(each.document.entry for each in building)
    name = (entries_shard_name if is_entry else shard_name)(run.stamp.run_id, number)
    means = [
        (each.text, document_vector(rows, revision.tokens))
        for each, revision, rows in zip(building, revisions, vectors, strict=True)
        if each.revision in texts_missing
    ]
    written = [
        (revision, rows)
        for revision, rows in zip(revisions, vectors, strict=True)
        if revision.chunks and (revision.revision not in whole or revision.revision in chunks_missing)
    ]
    if not written:
        return
    texts = None
    if means:
        texts = write_texts(
            layout, name, [text for text, _ in means], model.id, np.array([mean for _, mean in means], np.float32)
        )
    rows = np.concatenate([rows for _, rows in written])
    chunks = write_chunks(layout, name, [revision for revision, _ in written], model.id, rows)
    fresh = [note for note in notes if note.revision in chunks_missing]
    noted = write_notes(layout, name, fresh, run.stamp) if fresh else None
    run.register(texts, chunks, noted, whole)
    keys = (key for revision, _ in written for key in revision.text_hashes)
    run.vectors_of(model).stored_in(layout.shard("chunks", name), keys)


def _costs(paid: int, owners: Counter[tuple[str, str]], model: Model) -> Iterator[Cost]:
    price = model.open().price_per_million_tokens if paid else 0.0
    for (namespace, source), tokens in shared(paid, owners).items():
        yield Cost(namespace, source, "embed", tokens, None if price is None else tokens * price / 1e6)


def _failure(document: Unbuilt, stage: str, verdict: Verdict, run: MigrationRun) -> Failure:
    return Failure(
        document.document_id,
        document.namespace,
        document.source,
        document.uri,
        "failed",
        stage,
        verdict.reason,
        verdict.detail,
        1,
        run.stamp.run_id,
    )
