"""Changes to a corpus opened in this process; the runs are those of the command line and of a service's jobs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parquetry import ids
from parquetry.errors import SettingsError
from parquetry.flows.in_process import refresh
from parquetry.flows.pipelines.documents import run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.model import Access
from parquetry.process_folder import process_folder
from parquetry.serving.access.principals import OPERATOR
from parquetry.serving.access.refusals import AccessRefused
from parquetry.serving.access.visibility import access_for
from parquetry.serving.corpus_backend import TEXT_TYPE, DocumentToAdd
from parquetry.serving.corpus_results import Added, CorpusChange
from parquetry.serving.jobs.context import Failed, JobContext
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.model import Kind
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.jobs.writes import publish_writes
from parquetry.serving.service_client import document_error, run_error
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.manifest import Upload
from parquetry.sources.uploads.store import UploadStore
from parquetry.tasks.engine.base import DirectEngine

TEXT_NAME = "text.md"
"""file name of texts without a name"""


class EmbeddedWrites:
    """Changes to one corpus.

    Args:
        settings: settings of the corpus.
        namespace: namespace that documents are added to.
    """

    def __init__(self, settings: Settings, namespace: str) -> None:
        self._settings = settings
        self._namespace = namespace
        self._uploads = UploadStore(settings)
        self._pending: list[Upload] = []
        """kept, and not yet published"""

    def add(self, document: DocumentToAdd, *, wait: bool) -> Added:
        """Keep a document, and publish it with all that wait."""
        upload = self._keep(document)
        if not wait:
            self._pending.append(upload)
            return Added(_document_id(upload), upload.filename, 0)
        uploads, self._pending = [*self._pending, upload], []
        result, _ = self._carry_out("ingest", {"uploads": [_place(each) for each in uploads]})
        added = result["documents"][-1]
        if added["error"] is not None:
            raise document_error(added["error"]["reason"], added["error"]["detail"])
        return Added(added["document_id"], added["filename"], added["chunks"], tuple(added["warnings"]))

    def _keep(self, document: DocumentToAdd) -> Upload:
        metadata: Mapping[str, Any] = document.metadata
        access = self._access(document)
        match document.kind:
            case "file":
                path = Path(document.value)
                name = document.name or path.name
                found, _ = self._uploads.put(
                    self._namespace,
                    name,
                    path,
                    filename=name,
                    metadata=metadata,
                    access=access,
                    uploaded_by=access.user_id,
                )
            case "text":
                found, _ = self._uploads.put(
                    self._namespace,
                    document.name,
                    document.value.encode(),
                    filename=document.name or TEXT_NAME,
                    content_type=TEXT_TYPE,
                    metadata=metadata,
                    access=access,
                    uploaded_by=access.user_id,
                    kind="text",
                )
            case "url":
                found = self._fetch(document, metadata, access)
        return found

    def _fetch(self, document: DocumentToAdd, metadata: Mapping[str, Any], access: Access) -> Upload:
        from parquetry.sources.uploads.importing import fetch_url

        if document.name is not None:
            raise SettingsError("a page is named by its address; leave name out")
        page = fetch_url(document.value, self._settings)
        video = {"source": "youtube"} if page.kind == "youtube" else {}
        found, _ = self._uploads.put(
            self._namespace,
            document.value,
            page.content,
            filename=page.filename,
            content_type=page.content_type,
            metadata={**page.metadata, **metadata, **video},
            access=access,
            uploaded_by=access.user_id,
            kind=page.kind,
            url=document.value,
        )
        return found

    def _access(self, document: DocumentToAdd) -> Access:
        try:
            return access_for(
                OPERATOR, document.visibility, document.user_id, document.org_id, document.shared, document.tags
            )
        except AccessRefused as refused:
            error = SettingsError(refused.detail)
            error.reason = refused.reason
            raise error from refused

    def remove(self, row: Mapping[str, Any]) -> CorpusChange:
        """Remove a document, and its bytes if it was added.

        Args:
            row: its current row.
        """
        which = {"namespace": row["namespace"], "document_id": row["document_id"]}
        return self._removed("remove", {"documents": [which]})

    def clear(self, shared: bool | None, user_id: str | None, org_id: str | None) -> CorpusChange:
        """Remove what was added to the namespace, by audience and owner."""
        payload = {"namespace": self._namespace, "shared": shared, "user_id": user_id, "org_id": org_id}
        return self._removed("clear", payload)

    def _removed(self, kind: Kind, payload: Mapping[str, Any]) -> CorpusChange:
        result, failure = self._carry_out(kind, payload)
        if failure is not None:
            raise run_error(failure.reason, failure.detail)
        removed = result["removed"]
        return CorpusChange(result["version"], removed if isinstance(removed, int) else len(removed), result)

    def _carry_out(self, kind: Kind, payload: Mapping[str, Any]) -> tuple[Mapping[str, Any], Failed | None]:
        """Carry out a job of a service in this process, with a queue of its own."""
        with tempfile.TemporaryDirectory(dir=process_folder()) as folder:
            store = JobStore(Path(folder))
            try:
                job = store.submit(kind, self._namespace, payload, {})
                context = JobContext(self._settings, Path(folder), store, self._uploads)
                outcome = publish_writes(context, [job], StoppableEngine())[job.id]
            finally:
                store.close()
        return outcome.result, outcome.failure

    def publish_pending(self) -> None:
        """Publish what is kept and waits."""
        if self._pending:
            uploads, self._pending = self._pending, []
            self._carry_out("ingest", {"uploads": [_place(each) for each in uploads]})

    def rebuild(self, documents: Sequence[str], namespace: str | None, *, embeddings_only: bool) -> CorpusChange:
        """Index documents again, whatever their hashes say."""
        request = reindex_request(self._settings, tuple(documents), namespace, embeddings_only=embeddings_only)
        report = run_refresh(request, DirectEngine(), Observer())
        if report.error is not None:
            raise report.error
        return CorpusChange(report.version, report.documents.removed, report.as_json())

    def refresh(self, targets: Sequence[str], namespace: str | None, *, allow_removals: bool) -> CorpusChange:
        """Bring the corpus up to date with its sources."""
        self.publish_pending()
        report = refresh(self._settings, *targets, namespace=namespace, allow_removals=allow_removals)
        return CorpusChange(report.version, report.documents.removed, report.as_json())


def _place(upload: Upload) -> dict[str, str]:
    return {"namespace": upload.namespace, "path": upload.path}


def _document_id(upload: Upload) -> str:
    return ids.document_id(upload.namespace, UPLOADS, upload.path)
