"""Attachment of files to vector stores: a file becomes a document of the store's folder, by a job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from parquetry import ids
from parquetry.errors import DocumentError
from parquetry.model import ChunkSize
from parquetry.serving.files.model import KeptFile, StoreFile, VectorStore, now
from parquetry.serving.jobs.model import Job, Kind
from parquetry.serving.search.service import Reader
from parquetry.serving.service.resources import Resources
from parquetry.serving.stores.namespaces import published
from parquetry.serving.stores.outcomes import INVALID, failure, outcome_of
from parquetry.sources.uploads.identity import STORE_KEY, UPLOADS, store_folder
from parquetry.storage.search.namespace_lists import index_bytes_of

AUTO = ChunkSize(800, 400)
"""size of chunks by the strategy `auto`, as OpenAI states it"""
_TOGETHER = 2_000
"""attachments that one job carries out"""
_STRANDED_US = 60 * 1_000_000
"""microseconds after which a change without a job, whose request died, is asked for again"""


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file to attach."""

    file: KeptFile
    attributes: Mapping[str, Any]
    chunk_size: ChunkSize


def path_of(attachment: StoreFile) -> str:
    """Return the path of the document of an attachment."""
    return f"{store_folder(attachment.store_id)}/{attachment.file_id}"


def document_id_of_attachment(store: VectorStore, attachment: StoreFile) -> str:
    """Return the id of the document of an attachment."""
    return ids.document_id(store.namespace, UPLOADS, path_of(attachment))


def attach(
    resources: Resources, store: VectorStore, files: Sequence[NewAttachment], batch_id: str | None = None
) -> Sequence[StoreFile]:
    """Attach files to a store, and queue the job that publishes their documents.

    Args:
        resources: parts of the service.
        store: the store.
        files: the files.
        batch_id: id of a new batch of them; None for no batch.

    Raises:
        StorageError: they cannot be kept.
        TransientError: too many jobs wait, or the place of uploads cannot be reached.
    """
    told = [(each.file.id, each.attributes, each.chunk_size) for each in files]
    rows = resources.stores.attach(store.id, told, batch_id)
    publish(resources, store, rows)
    return resources.stores.attachments(store.id, [each.file.id for each in files])


def publish(resources: Resources, store: VectorStore, attachments: Sequence[StoreFile]) -> list[str]:
    """Hand in the documents of attachments, and queue the jobs that publish them; what was done already stays.

    Returns:
        The jobs.
    """
    jobs = []
    for some in _groups(attachments):
        kept = [each for each in some if _hand_in(resources, store, each)]
        if kept:
            uploads = [{"namespace": store.namespace, "path": path_of(each)} for each in kept]
            jobs.append(_submit(resources, store, "ingest", {"uploads": uploads}).id)
            resources.stores.queued(kept, jobs[-1])
    return jobs


def _hand_in(resources: Resources, store: VectorStore, attachment: StoreFile) -> bool:
    """Keep the document of an attachment; record a failure of the file itself, and return False then."""
    file = resources.files.of(attachment.file_id)
    if file is None:
        resources.stores.settle(attachment, "failed", (INVALID, "the file was deleted"))
        return False
    named = {"id": store.id, "file_id": file.id, "attributes": list(attachment.attributes)}
    try:
        resources.uploads.put(
            store.namespace,
            file.id,
            resources.content.path(file.id),
            filename=file.filename,
            content_type=file.content_type,
            metadata={**attachment.attributes, STORE_KEY: named},
            access=store.access,
            uploaded_by=file.access.user_id,
            path=path_of(attachment),
            chunk_size=attachment.chunk_size,
        )
    except DocumentError as error:
        resources.stores.settle(attachment, "failed", failure(error.reason, error.detail))
        return False
    except FileNotFoundError:
        resources.stores.settle(attachment, "failed", failure("missing-bytes", "the bytes of the file are gone"))
        return False
    return True


def change_attributes(
    resources: Resources, store: VectorStore, attachment: StoreFile, attributes: Mapping[str, Any]
) -> StoreFile:
    """Give an attachment other attributes, and queue the job that publishes them."""
    rows = resources.stores.begin([attachment], "in_progress", attributes)
    publish(resources, store, rows)
    (changed,) = resources.stores.attachments(store.id, [attachment.file_id])
    return changed


def detach(resources: Resources, store: VectorStore, attachments: Sequence[StoreFile]) -> list[str]:
    """Remove attachments, and queue the jobs that remove their documents.

    Returns:
        The jobs.
    """
    jobs = []
    for some in _groups(attachments):
        rows = resources.stores.begin(some, "removing")
        jobs.append(_remove_documents(resources, store, rows).id)
        resources.stores.queued(rows, jobs[-1])
    return jobs


def cancel(resources: Resources, store: VectorStore, batch_id: str) -> None:
    """Cancel the files of a batch that are not done: what of them was published already is removed again."""
    for some in _groups(resources.stores.cancel_batch(batch_id)):
        for job_id in {each.job for each in some if each.job is not None}:
            job = resources.jobs.get(job_id)
            if job is not None and not job.is_final:
                resources.jobs.cancel(job_id)
        _remove_cancelled(resources, store, some)


def _remove_cancelled(resources: Resources, store: VectorStore, attachments: Sequence[StoreFile]) -> None:
    removal = _remove_documents(resources, store, attachments)
    resources.stores.queued(resources.stores.begin(attachments, "cancelled"), removal.id)


def _groups(attachments: Sequence[StoreFile]) -> Iterable[Sequence[StoreFile]]:
    """Yield attachments in groups that one job can carry out."""
    for start in range(0, len(attachments), _TOGETHER):
        yield attachments[start : start + _TOGETHER]


def _remove_documents(resources: Resources, store: VectorStore, attachments: Iterable[StoreFile]) -> Job:
    documents = []
    for each in attachments:
        # The job looks for published documents only.
        resources.uploads.delete(store.namespace, path_of(each))
        documents.append({"namespace": store.namespace, "document_id": document_id_of_attachment(store, each)})
    return _submit(resources, store, "remove", {"documents": documents})


def _submit(resources: Resources, store: VectorStore, kind: Kind, payload: Mapping[str, Any]) -> Job:
    """Queue a job on behalf of the owner of a store."""
    owner = {"user_id": store.access.user_id, "org_id": store.access.org_id, "token_id": None}
    return resources.jobs.submit(kind, store.namespace, payload, owner)


def follow(resources: Resources, store: VectorStore, attachments: Sequence[StoreFile]) -> None:
    """Record how the jobs of attachments ended, and ask again for changes that got lost.

    Raises:
        StorageError: the state or the corpus cannot be read.
    """
    jobs = {job: resources.jobs.get(job) for job in {each.job for each in attachments if each.job is not None}}
    done, lost = [], []
    for each in attachments:
        if not each.is_in_work:
            continue
        job = None if each.job is None else jobs[each.job]
        if job is None:
            lost.append(each)
        elif job.is_final:
            outcome = outcome_of(each, path_of(each), job)
            if outcome is None:
                lost.append(each)
            else:
                done.append((each, outcome))
    usage = _usage(resources, store, [each for each, outcome in done if outcome.status == "completed"])
    for each, outcome in done:
        resources.stores.settle(each, outcome.status, outcome.error, usage.get(each.number, 0))
    _again(resources, store, [each for each in lost if each.touched_at < now() - _STRANDED_US])


def _again(resources: Resources, store: VectorStore, lost: Sequence[StoreFile]) -> None:
    by_status: dict[str, list[StoreFile]] = defaultdict(list)
    for each in lost:
        by_status[each.status].append(each)
    publish(resources, store, resources.stores.begin(by_status["in_progress"], "in_progress"))
    detach(resources, store, by_status["removing"])
    for some in _groups(by_status["cancelled"]):
        _remove_cancelled(resources, store, some)


def bytes_of(reader: Reader, document_id: str) -> int:
    """Return the bytes that a document takes in the index."""
    with closing(reader.index.session()) as session:
        return index_bytes_of(session, [document_id]).get(document_id, 0)


def _usage(resources: Resources, store: VectorStore, attachments: Sequence[StoreFile]) -> dict[int, int]:
    """Return the bytes that attachments take in the index, by their numbers."""
    documents = {document_id_of_attachment(store, each): each.number for each in attachments}
    if not documents:
        return {}
    with published(resources) as reader:
        if reader is None:
            return {}
        with closing(reader.index.session()) as session:
            found = index_bytes_of(session, list(documents))
    return {documents[document_id]: size for document_id, size in found.items()}
