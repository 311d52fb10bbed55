"""A queue of jobs over a real corpus, carried out in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from parquetry import ids
from parquetry.model import Access
from parquetry.serving.jobs.context import JobContext, Stoppable
from parquetry.serving.jobs.execute import carry_out
from parquetry.serving.jobs.model import Job, Kind
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.jobs.withdrawing import change_of, handed_in
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.serving.service.cancelling import cancel
from parquetry.serving.service.resources import Resources
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.store import UploadStore
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake

OWNER = {"user_id": None, "org_id": None, "token_id": None}


class Desk:
    """A corpus with a source `docs`, uploads and jobs."""

    def __init__(self, root: Path, **sections: Any) -> None:
        self.docs = root / "docs"
        self.docs.mkdir()
        corpus = {"root": str(root / "corpus"), **sections.pop("corpus", {})}
        tables = {"extraction": {"workers": 1}, "source": [{"name": "docs", "uri": str(self.docs)}], **sections}
        self.settings = parse_settings({"corpus": corpus, **tables}, "test")
        self.state = state_folder(self.settings)
        self.store = JobStore(self.state)
        self.uploads = UploadStore(self.settings)
        self.lines: list[str] = []
        self.context = JobContext(self.settings, self.state, self.store, self.uploads, tell=self.lines.append)

    def put(self, name: str, text: str | bytes, namespace: str = "default", **options: Any) -> Job:
        """Keep an upload, and queue the job that publishes it."""
        content = text.encode() if isinstance(text, str) else text
        access = options.pop("access", Access())
        upload, _ = self.uploads.put(namespace, name, content, filename=name, access=access, **options)
        payload = {"uploads": [{"namespace": namespace, "path": upload.path}]}
        return self.store.submit("ingest", namespace, payload, OWNER)

    def remove(self, *names: str, source: str = UPLOADS, namespace: str = "default") -> Job:
        """Queue the removal of documents."""
        documents = [
            {"namespace": namespace, "document_id": ids.document_id(namespace, source, name)} for name in names
        ]
        return self.store.submit("remove", namespace, {"documents": documents}, OWNER)

    def ask(self, kind: Kind, namespace: str | None = None, /, **payload: Any) -> Job:
        return self.store.submit(kind, namespace, payload, OWNER)

    def work(self) -> None:
        """Carry out all jobs, as a process does."""
        while jobs := self.store.claim():
            carry_out(self.context, jobs)

    def restart(self) -> None:
        """Go on as the next process does after one that stopped."""
        self.context = replace(self.context, runs=Stoppable(), writes=Stoppable())

    def cancel(self, job: Job) -> Job:
        """Cancel a job, as a process that answers requests does."""
        parts = SimpleNamespace(settings=self.settings, jobs=self.store, uploads=self.uploads, state=self.state)
        return cancel(cast(Resources, parts), job)

    def done(self, job: Job) -> Job:
        """Return a job as it is now."""
        found = self.store.get(job.id)
        assert found is not None
        return found

    def kept(self, name: str) -> str | None:
        """Return the text of an upload; None if there is none."""
        upload = self.uploads.get("default", name)
        return None if upload is None else self.uploads.read(upload).decode()

    def paths(self, namespace: str = "default") -> list[str]:
        """Return the paths of the published documents."""
        root = self.settings.corpus.root
        if not Lake.exists(root):
            return []
        return [row.path for row in current_rows(Lake(root).snapshot(), [namespace])]

    def publishes(self) -> int:
        """Return the number of versions that were published so far."""
        return Lake(self.settings.corpus.root).snapshot().version

    def found(self, query: str) -> list[str]:
        """Return the names of the documents that a search finds."""
        with Reader(self.settings) as reader:
            return [hit.row["filename"] for hit in reader.search(SearchRequest(query, mode="text")).hits]

    def close(self) -> None:
        self.store.close()


def hand_in(jobs: Desk, name: str, text: str) -> Job:
    """Hand in as the dashboard does: what is replaced is set aside."""
    known = jobs.uploads.get("default", name)
    before = None if known is None else (known, jobs.uploads.read(known))
    upload, changed = jobs.uploads.put("default", name, text.encode(), filename=name)
    if before is not None:
        SetAside(jobs.state).keep(change_of(upload), *before)
    payload = {"uploads": [handed_in(upload, changed=changed, replaces=before is not None)]}
    return jobs.store.submit("ingest", "default", payload, OWNER)


def remove(jobs: Desk, *places: tuple[str, str]) -> Job:
    """Ask for a removal that can be undone."""
    documents = [
        {"namespace": "default", "document_id": ids.document_id("default", source, path)} for source, path in places
    ]
    return jobs.store.submit("remove", "default", {"documents": documents, "undo": True}, OWNER)
