"""Import of a dump: its rows checked and staged, its documents stored in shards of bounded size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from parquetry import ids
from parquetry.embed.base import Vectors
from parquetry.errors import RefusedError
from parquetry.importing.chunk import EXTRACTOR, RejectedRow, Rejection
from parquetry.importing.documents import ImportedDocument, document_of
from parquetry.importing.fields import RowReader
from parquetry.importing.vectors import VectorChecker
from parquetry.model import Access, DocumentRow
from parquetry.planning.fingerprint import Fingerprint
from parquetry.planning.rows import blank_row, removed_row
from parquetry.printing import visible
from parquetry.storage.exchange.dump_files import rows_in
from parquetry.storage.exchange.published import PublishedDocuments
from parquetry.storage.exchange.staging import StagedRows
from parquetry.storage.files.layout import shard_name
from parquetry.storage.lake.shards import (
    RevisionChunks,
    Shard,
    StoredText,
    write_chunks,
    write_texts,
)
from parquetry.tasks.documents.batch import document_vector
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.row_spool import RowSpool
from parquetry.tasks.documents.run import DocumentRun

KEPT_REJECTIONS = 1000
"""rejections that are kept in memory and recorded; the others are only told and counted"""
_SHARD_CHUNKS = 8192
_SHARD_BYTES = 48 << 20
"""bytes of the vectors and texts of a shard"""
_ALIKE = 0.9
"""least median cosine of imported vectors and those of the model that is named"""
_BYTES_PER_TOKEN = 3


class Rejections:
    """Counts rejected rows and documents by reason, and tells each."""

    def __init__(self) -> None:
        self.kept: list[Rejection] = []
        self.by_reason: Counter[str] = Counter()

    def add(self, place: str, error: RejectedRow) -> Rejection:
        rejection = Rejection(visible(place), error.reason, visible(error.detail))
        self.by_reason[error.reason] += 1
        if len(self.kept) < KEPT_REJECTIONS:
            self.kept.append(rejection)
        return rejection

    def __len__(self) -> int:
        return self.by_reason.total()


@dataclass
class ImportOutcome:
    """Documents stored by an import so far."""

    shards: list[Shard] = field(default_factory=list)
    rows: RowSpool = field(default_factory=RowSpool)
    known: list[DocumentRow] = field(default_factory=list)
    """the published rows that are replaced"""
    counts: Counter[str] = field(default_factory=Counter)
    """documents by outcome: added, changed, unchanged, failed, removed"""
    chunks: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """key of metadata that was not kept -> number of documents"""


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The source that documents are imported into."""

    namespace: str
    source: str
    access: Access | None
    """access of all documents; None to follow the dump"""


def stage(
    files: Sequence[Path],
    staged: StagedRows,
    reader: RowReader,
    checker: VectorChecker,
    rejections: Rejections,
) -> Iterator[Rejection]:
    """Check the rows of files and stage the good ones; yield the others.

    Raises:
        SettingsError: a file cannot be read.
    """
    for row in rows_in(files):
        try:
            if isinstance(row.values, RejectedRow):
                raise row.values
            chunk = reader.chunk(row.values)
            vector = checker.checked(reader.vector(row.values))
        except RejectedRow as error:
            yield rejections.add(row.place, error)
            continue
        staged.add(row.place, chunk, vector)
    staged.finish()


def check_sample(staged: StagedRows, model: Model) -> float:
    """Embed some texts anew, and compare the vectors; return the median cosine.

    Raises:
        RefusedError: they are not alike.
    """
    texts, vectors = staged.sample()
    embedded = model.open().embed(texts)
    compared = [place for place in range(len(texts)) if place not in embedded.refused and place not in embedded.unpaid]
    if not compared:
        return 1.0
    cosines = np.einsum("ij,ij->i", embedded.vectors[compared], vectors[compared])
    median = float(np.median(cosines))
    if median < _ALIKE:
        raise RefusedError(
            f"these vectors are not those of {model.id}: of {len(compared)} texts that it embedded anew, the median "
            f"cosine is {median:.2f}. Name the model that made them with --embedder; --no-check imports them all the "
            "same, and searches will find little"
        )
    return median


class Importer:
    """Stores the documents of a dump.

    Args:
        run: the run in progress.
        target: the source.
        model: model of the vectors.
        published: the source's documents so far.
    """

    def __init__(self, run: DocumentRun, target: ImportTarget, model: Model, published: PublishedDocuments) -> None:
        self._run, self._target, self._model = run, target, model
        self._published = published
        self.done = ImportOutcome()
        self._waiting: list[tuple[str, ImportedDocument]] = []
        """id and document"""
        self._replaced: list[str] = []
        """ids of those that are published in another state"""
        self._size = [0, 0]
        """chunks and bytes of those"""

    def add(self, document: ImportedDocument) -> None:
        """Add a document; stores those that wait when there are enough."""
        self._run.check_cancelled()
        self.done.dropped.update(document.dropped)
        identity = ids.document_id(self._target.namespace, self._target.source, document.path)
        same = self._published.is_same(identity, document.content_hash)
        self.done.counts["unchanged" if same else "added" if same is None else "changed"] += 1
        if same:
            return
        self._waiting.append((identity, document))
        if same is False:
            self._replaced.append(identity)
        self._size[0] += len(document.chunks)
        self._size[1] += document.vectors.nbytes + 4 * len(document.text)
        if self._size[0] >= _SHARD_CHUNKS or self._size[1] >= _SHARD_BYTES:
            self.flush()

    def failed(self, path: str) -> None:
        """Count a document that cannot be imported; if it is published, it stays as it is."""
        self.done.counts["failed"] += 1
        self._published.is_same(ids.document_id(self._target.namespace, self._target.source, path), "")

    def flush(self) -> None:
        """Store the documents that wait."""
        waiting, self._waiting, self._size = self._waiting, [], [0, 0]
        if not waiting:
            return
        known = {row.document_id: row for row in self._published.rows(self._replaced)}
        self._replaced = []
        self.done.known += known.values()
        texts: list[StoredText] = []
        revisions: list[RevisionChunks] = []
        means: list[Vectors] = []
        for (identity, document), tokens in zip(waiting, self._tokens(waiting), strict=True):
            revision = ids.revision(identity, self._run.stamp.run_id)
            texts.append(StoredText(revision, document.text, document.parts, ()))
            keys = ids.text_hashes(document.texts)
            revisions.append(RevisionChunks(revision, document.chunks, document.texts, tokens, keys))
            means.append(document_vector(document.vectors, tokens))
            self.done.rows.extend([self._row(identity, document, revision, sum(tokens), known.get(identity))])
        layout, number = self._run.lake.layout, len(self.done.shards)
        name = shard_name(self._run.stamp.run_id, number)
        vectors = np.concatenate([document.vectors for _, document in waiting])
        self.done.shards.append(write_texts(layout, name, texts, self._model.id, np.array(means, np.float32)))
        self.done.shards.append(write_chunks(layout, name, revisions, self._model.id, vectors))
        self.done.chunks += len(vectors)

    def remove_unseen(self) -> None:
        """Remove the published documents that the dump does not hold."""
        gone = list(self._published.unseen_rows())
        self.done.known += gone
        self.done.rows.extend(removed_row(row, self._run.stamp, "import/gone: not in the dump") for row in gone)
        self.done.counts["removed"] += len(gone)

    def _tokens(self, waiting: Sequence[tuple[str, ImportedDocument]]) -> list[list[int]]:
        """Return the tokens of each chunk: as the dump says, or as an estimate."""
        return [
            [
                _estimate(text) if given is None else given
                for given, text in zip(document.tokens, document.texts, strict=True)
            ]
            for _, document in waiting
        ]

    def _row(
        self, identity: str, document: ImportedDocument, revision: int, tokens: int, known: DocumentRow | None
    ) -> DocumentRow:
        stamp, target, facts = self._run.stamp, self._target, document.facts
        blank = blank_row(stamp)
        return replace(
            blank,
            document_id=identity,
            namespace=target.namespace,
            source=target.source,
            path=document.path,
            uri=facts.uri or f"import:{target.source}/{document.path}",
            filename=facts.filename,
            title=facts.title or _stem(facts.filename),
            media_type=facts.media_type,
            size=len(document.text.encode()),
            etag=document.content_hash,
            modified_at=facts.modified_at or stamp.at,
            content_hash=document.content_hash,
            revision=revision,
            fingerprint=str(Fingerprint("import", "import", self._model.fingerprints.embedding)),
            extractor=EXTRACTOR,
            embedder=self._model.id,
            pages=sum(part.kind != "document" for part in document.parts),
            characters=len(document.text),
            chunks=len(document.chunks),
            tokens=tokens,
            access=document.access,
            metadata=facts.metadata,
            created_at=stamp.at if known is None else known.created_at,
        )


def documents_of(
    staged: StagedRows, rejections: Rejections, rejected: Callable[[Rejection], None], embedder: str
) -> Iterator[ImportedDocument | str]:
    """Yield the documents of staged rows, and the path of one that cannot be imported.

    Args:
        staged: the rows.
        rejections: receives what is left out, as does `rejected`.
        rejected: receives what is left out.
        embedder: id of the model of their vectors.
    """
    repeated = staged.duplicates()
    for rows, chunks, vectors in staged.documents():
        kept = [place for place, (number, _) in enumerate(rows) if number not in repeated]
        for number, place in rows if len(kept) < len(rows) else ():
            if number in repeated:
                error = RejectedRow("duplicate-id", "an earlier row has its id, and is imported")
                rejected(rejections.add(place, error))
        if not kept:
            continue
        try:
            yield document_of([chunks[place] for place in kept], vectors[kept], embedder)
        except RejectedRow as error:
            rejected(rejections.add(chunks[0].path, error))
            yield chunks[0].path


def _estimate(text: str) -> int:
    """Return the likely tokens of a text, rounded up."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def _stem(filename: str) -> str:
    stem, dot, _ = filename.rpartition(".")
    return stem if dot and stem else filename
