"""The steps of an import: check the rows of a dump, store its documents with their vectors, publish in one commit.

Nothing is embedded, but for a sample that shows whether the vectors are those of the model that is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from parquetry.embed.registry import calls_service, embedder_id, open_embedder
from parquetry.errors import BrokenDocument, RefusedError, SettingsError
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.pipeline import Pipeline, open_run
from parquetry.flows.pipelines.run_watch import RunWatch, watched
from parquetry.importing.chunk import FieldNames, Rejection
from parquetry.importing.fields import RowReader
from parquetry.importing.vectors import VectorChecker
from parquetry.model import Access, DocumentRow, Failure
from parquetry.planning.report import DocumentCounts, RunReport, Work
from parquetry.plural import counted
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.identity import UPLOADS, check_namespace, checked_name
from parquetry.storage.exchange.dump_files import files_of
from parquetry.storage.exchange.published import PublishedDocuments
from parquetry.storage.exchange.staging import StagedRows
from parquetry.storage.lake.migrations import brought_up
from parquetry.tasks.documents.importing import (
    Importer,
    ImportOutcome,
    ImportTarget,
    Rejections,
    check_sample,
    documents_of,
    stage,
)
from parquetry.tasks.documents.models import Model, fingerprints_of
from parquetry.tasks.documents.publish import publish
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.engine.base import DirectEngine, Engine

KIND = "import"
"""kind of the run in the table `runs`"""
_SHOWN_KEYS = 12


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """Request for an import."""

    settings: Settings
    paths: tuple[Path, ...]
    """files and folders of the dump"""
    embedder: str
    """embedder that made the vectors, as settings name it"""
    source: str
    namespace: str
    access: Access | None = None
    """access of all documents; None to follow the dump"""
    names: FieldNames = field(default_factory=FieldNames)
    replace: bool = False
    """True to remove documents of the source that the dump does not hold"""
    allow_removals: bool = False
    check: bool | None = None
    """True to compare a sample of vectors with the model, False not to; None if it runs on this machine"""


def run_import(request: ImportRequest, observer: Observer, rejected: Callable[[Rejection], None]) -> RunReport:
    """Import a dump: check, store, publish, record.

    Args:
        request: request to run.
        observer: receives progress.
        rejected: receives each row and document that is not imported.

    Returns:
        The report; `failures` has the first 1000 rejections.

    Raises:
        RefusedError: nothing of the dump can be imported, or its vectors are not those of the model.
        ParquetryError: nothing was published.
    """
    with watched(request.settings, KIND) as watch:
        observer = watch.observed(observer)
        request = replace(request, settings=brought_up(request.settings))
        _check_names(request)
        files = files_of(request.paths)
        _check_embedder(request)
        run = open_run(partial(DocumentRun), request.settings, (), KIND)
        with StagedRows(sum(file.stat().st_size for file in files)) as staged:
            done = _Import(run, request, files, staged, watch, observer, rejected).execute(DirectEngine())
        report = watch.published(done)
        observer.published(report)
    return report


class _Import(Pipeline[DocumentRun, PublishedDocuments, ImportOutcome, tuple[int, Collection[DocumentRow]], RunReport]):
    """The steps of an import."""

    def __init__(
        self,
        run: DocumentRun,
        request: ImportRequest,
        files: tuple[Path, ...],
        staged: StagedRows,
        watch: RunWatch,
        observer: Observer,
        rejected: Callable[[Rejection], None],
    ) -> None:
        super().__init__(run, watch, observer)
        self._request, self._files, self._staged, self._rejected = request, files, staged, rejected
        self._rejections = Rejections()
        self._warnings: list[str] = []
        self._refused: list[str] = []

    def plan(self) -> PublishedDocuments:
        return PublishedDocuments(self.run.base, self._request.namespace, self._request.source)

    def process(self, plan: PublishedDocuments, engine: Engine) -> ImportOutcome:
        request, staged, rejections = self._request, self._staged, self._rejections
        model = engine.step("check", self._checked)
        importer = Importer(self.run, ImportTarget(request.namespace, request.source, request.access), model, plan)
        for found in documents_of(staged, rejections, self._rejected, model.id):
            if isinstance(found, str):
                importer.failed(found)
            else:
                importer.add(found)
        importer.flush()
        if request.replace:
            self._remove(importer, plan)
        self._note_metadata(importer.done.dropped)
        self.run.give_memory_back()
        return importer.done

    def publish(self, plan: PublishedDocuments, work: ImportOutcome) -> tuple[int, Collection[DocumentRow]]:  # noqa: ARG002
        return publish(self.run, work.known, work.rows, work.shards)

    def report(
        self,
        plan: PublishedDocuments,  # noqa: ARG002 - of every kind of run
        work: ImportOutcome,
        outcome: tuple[int, Collection[DocumentRow]],
        seconds: float,
    ) -> RunReport:
        counts, rejections = work.counts, self._rejections
        unnamed = len(rejections) - len(rejections.kept)
        more = [f"{counted(unnamed, 'more rejection')} not recorded one by one"] if unnamed else []
        return RunReport(
            run_id=self.run.stamp.run_id,
            version=outcome[0],
            version_before=self.run.base.version,
            seconds=seconds,
            documents=DocumentCounts(scanned=counts.total() - counts["removed"], **counts),
            work=Work(
                chunks_written=work.chunks,
                chunks_reused=work.chunks,
                bytes_read=sum(file.stat().st_size for file in self._files),
            ),
            failures=tuple(self._failure(each) for each in rejections.kept),
            warnings=(*self._warnings, *more),
            refused=tuple(self._refused),
        )

    def columns(self, report: RunReport) -> Mapping[str, object]:
        work = report.work
        return {
            **report.documents.as_dict(),
            "namespaces": [self._request.namespace],
            "sources": [self._request.source],
            "chunks_written": work.chunks_written,
            "chunks_embedded": 0,
            "chunks_reused": work.chunks_reused,
            "bytes_read": work.bytes_read,
        }

    def columns_of_failure(self) -> Mapping[str, object]:
        return {"namespaces": [self._request.namespace], "sources": [self._request.source]}

    def _checked(self) -> Model:
        """Check and stage the rows; return the model of their vectors."""
        request, staged, rejections = self._request, self._staged, self._rejections
        identity = _identity(request, None)
        checker = VectorChecker(None if identity is None else int(identity.rpartition("@")[2]))
        for each in stage(self._files, staged, RowReader(request.names, request.access), checker, rejections):
            self._rejected(each)
        if not staged.count or checker.dimension is None:
            reasons = ", ".join(f"{count} x {reason}" for reason, count in rejections.by_reason.most_common())
            raise RefusedError(
                f"no row of the dump can be imported ({reasons or 'it holds none'}); nothing was changed"
            )
        if checker.scaled:
            self._warnings.append(
                f"the vectors had lengths from {checker.shortest:.3g} to {checker.longest:.3g} and are stored with "
                "length 1: cosines stay as they were"
            )
        model = _model(request, identity or _identity(request, checker.dimension) or "")
        self.run.models = {request.namespace: model}
        if request.check or (request.check is None and not calls_service(request.embedder)):
            cosine = check_sample(staged, model)
            self._warnings.append(
                f"a sample of texts embedded anew: median cosine {cosine:.3f} with the vectors imported"
            )
        return model

    def _remove(self, importer: Importer, published: PublishedDocuments) -> None:
        """Remove what the dump does not hold, unless that may be a mistake."""
        limits, source = self.run.settings.refresh, self._request.source
        gone, total = published.unseen, len(published)
        if not gone:
            return
        if self._rejections:
            self._refused.append(
                f"{counted(gone, 'document')} of source {source} that the dump does not hold stay, because not all of "
                "its rows could be imported"
            )
        elif not self._request.allow_removals and gone > max(
            limits.max_removed_documents, limits.max_removed_share * total
        ):
            self._refused.append(
                f"source {source} would lose {gone} of {counted(total, 'document')}, which stay. If that is right, run "
                "again with --allow-removals"
            )
        else:
            importer.remove_unseen()

    def _note_metadata(self, dropped: Counter[str]) -> None:
        if dropped:
            keys = ", ".join(key for key, _ in dropped.most_common(_SHOWN_KEYS))
            self._warnings.append(
                f"metadata that differ between the chunks of a document are not kept: {keys}; --per-row makes each row "
                "a document with its own"
            )

    def _failure(self, rejection: Rejection) -> Failure:
        request = self._request
        return Failure(
            "", request.namespace, request.source, rejection.place, "failed", "import", rejection.reason,
            rejection.detail, 1, self.run.stamp.run_id,
        )  # fmt: skip


def _check_names(request: ImportRequest) -> None:
    """Refuse a namespace or a source that cannot be one, or belongs to the settings."""
    name, settings = request.source, request.settings
    try:
        check_namespace(request.namespace)
        shown = checked_name(name)
    except BrokenDocument as error:
        raise SettingsError(f"--namespace or --source: {error.detail}") from error
    configured = {source.name for source in settings.source}
    if not name.strip() or name != shown or "://" in name:
        raise SettingsError(f"--source {name!r}: name it with letters, digits, dots and dashes")
    if name == UPLOADS or name in configured:
        raise SettingsError(
            f"--source {name}: the next refresh of this source would remove what is imported; choose another name"
        )


def _check_embedder(request: ImportRequest) -> None:
    """Refuse vectors that the questions to a namespace could not be compared with."""
    settings = request.settings
    used = settings.embedder_of(request.namespace)
    if request.embedder == used:
        return
    other = replace(request, embedder=used)
    if _identity(request, 1) == _identity(other, 1):
        return
    raise SettingsError(
        f"questions to namespace {request.namespace} are embedded with {used}, and cannot be compared with vectors of "
        f"{request.embedder}; set corpus.embedder, or import into a namespace with that embedder ([[namespace]], "
        "--namespace)"
    )


def _identity(request: ImportRequest, dimension: int | None) -> str | None:
    """Return the id of the embedder; None if only the length of a vector tells, and none is given."""
    embedding, hub = request.settings.embedding, request.settings.hub
    known = embedder_id(request.embedder, embedding, hub)
    if known is not None or dimension is None:
        return known
    return embedder_id(request.embedder, embedding.model_copy(update={"dimension": dimension}), hub)


def _model(request: ImportRequest, identity: str) -> Model:
    settings = request.settings
    opened = partial(open_embedder, request.embedder, settings.embedding, settings.hub)
    return Model(identity, fingerprints_of(settings, identity), opened)
