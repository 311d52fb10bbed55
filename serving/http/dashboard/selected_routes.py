"""Actions on several documents, and the undoing of a deletion."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData

from parquetry.plural import counted
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import PublishedParts, WriteCaller
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import DOCUMENTS
from parquetry.serving.http.operation_routes import job_of
from parquetry.serving.http.problems import Problem
from parquetry.serving.jobs.model import Job
from parquetry.serving.service.awaiting import after_wait, in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.selecting import (
    MOST_SELECTED,
    SelectedDocuments,
    read_again,
    remove,
    retag,
    selection,
    undoable,
)
from parquetry.serving.service.writing import submit
from parquetry.serving.web.documents import item_of
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.search.document_browsing import STATUSES, Browsing, matching_ids
from parquetry.storage.search.filters import Filters

router = APIRouter(include_in_schema=False)
_NAMED = 100
"""documents that a question names"""
_LONGEST_TAG = 200
_ACTIONS = ("delete", "retry", "tag", "untag")


@router.post(f"{DOCUMENTS}/selected")
async def ask_about_selected(
    request: Request, caller: WriteCaller, parts: PublishedParts, fields: CheckedForm
) -> Response:
    """Ask before something is done to several documents."""
    action, tag = _action(fields), text(fields, "tag").strip()
    ids = [each for each in fields.getlist("id") if isinstance(each, str)]
    if text(fields, "all"):
        ids = await in_thread(_matching, parts, caller, fields)
    if len(ids) > MOST_SELECTED:
        raise _too_many()
    found: SelectedDocuments = await in_thread(selection, parts, caller, ids)
    if not found.rows:
        raise Problem(422, "nothing-selected", "select documents that you may change; go back to the list")
    return page(
        request,
        "selected.html",
        action=action,
        tag=tag,
        documents=[item_of(row) for row in found.rows[:_NAMED]],
        ids=" ".join(row["document_id"] for row in found.rows),
        total=len(found.rows),
        elsewhere=sum(row["source"] != UPLOADS for row in found.rows),
        forbidden=found.forbidden,
        back=_back(fields),
    )


@router.post(f"{DOCUMENTS}/selected/confirmed")
async def change_selected(
    request: Request, caller: WriteCaller, parts: PublishedParts, fields: CheckedForm
) -> Response:
    """Do what was asked about."""
    action, ids = _action(fields), text(fields, "ids").split()
    if len(ids) > MOST_SELECTED:
        raise _too_many()
    found: SelectedDocuments = await in_thread(selection, parts, caller, ids)
    if not found.rows:
        raise Problem(422, "nothing-selected", "none of these documents is there any more; go back to the list")
    return redirect(f"{DOCUMENTS}?notice={await _changed(request, parts, caller, action, found.rows, fields)}")


async def _changed(
    request: Request, parts: Resources, caller: Principal, action: str, rows: Sequence[Any], fields: FormData
) -> str:
    """Change documents; return the notice that says so."""
    record = Recorded(request, caller, "knowledge.delete" if action == "delete" else "knowledge.ingest", None)
    jobs: list[Job]
    if action == "delete":
        jobs = await in_thread(remove, parts, caller, rows)
        notices = ("deleted", "deleting")
    elif action == "retry":
        jobs = await in_thread(read_again, parts, caller, rows)
        notices = ("reading", "reading")
    else:
        jobs, changed = await in_thread(_retagged, parts, caller, rows, _tag(fields), action == "tag")
        notices = ("tagged", "tagging") if changed else ("untouched", "untouched")
    record.write(documents=len(rows), status=202)
    # Reading again may take long: its progress is shown elsewhere.
    done = [job if action == "retry" else await after_wait(parts, job) for job in jobs]
    if any(job.state in ("failed", "cancelled") for job in done):
        return "failed"
    return notices[0] if all(job.is_final for job in done) else notices[1]


def _retagged(parts: Resources, caller: Principal, rows: Sequence[Any], tag: str, add: bool) -> tuple[list[Job], int]:
    return retag(parts, caller, rows, tag, add=add)


@router.post(f"{DOCUMENTS}/undo")
async def undo_deletion(request: Request, caller: WriteCaller, parts: PublishedParts, fields: CheckedForm) -> Response:
    """Bring back the documents of a deletion."""
    removal: Job = await in_thread(job_of, parts, caller, text(fields, "job"))
    if removal.id not in {each.id for each in await in_thread(undoable, parts, caller)}:
        raise Problem(410, "too-late", "this deletion cannot be undone any more")
    record = Recorded(request, caller, "knowledge.ingest", removal.namespace)
    job = await in_thread(submit, parts, caller, "reinstate", removal.namespace, {"removal": removal.id})
    record.write(documents=len(removal.payload["documents"]), status=202)
    done = await after_wait(parts, job)
    if done.state in ("failed", "cancelled"):
        raise Problem(503, done.reason or "failed", done.detail or "the deletion could not be undone")
    return redirect(f"{DOCUMENTS}?notice={'restored' if done.is_final else 'restoring'}")


def _action(fields: FormData) -> str:
    action = text(fields, "action")
    if action not in _ACTIONS:
        raise Problem(422, "invalid-request", f"action: one of {', '.join(_ACTIONS)}")
    if action in ("tag", "untag"):
        _tag(fields)
    return action


def _tag(fields: FormData) -> str:
    tag = text(fields, "tag").strip()
    if not tag or len(tag) > _LONGEST_TAG:
        raise Problem(422, "invalid-request", f"name a tag of at most {_LONGEST_TAG} characters")
    return tag


def _matching(parts: Resources, caller: Principal, fields: FormData) -> list[str]:
    namespace, known = text(fields, "namespace"), text(fields, "status")
    asked = Filters(
        namespaces=(namespace,) if namespace else (),
        source=text(fields, "source") or None,
        media_type=text(fields, "type") or None,
    )
    browsing = Browsing(
        filters_for(caller, None, asked), text(fields, "q") or None, next((s for s in STATUSES if s == known), None)
    )
    with parts.follower.reader() as reader, closing(reader.index.session()) as session:
        return matching_ids(session, browsing, MOST_SELECTED + 1)


def _back(fields: FormData) -> str:
    kept = {name: text(fields, name) for name in ("q", "status", "namespace", "source", "type")}
    return f"{DOCUMENTS}?{urlencode({name: value for name, value in kept.items() if value})}"


def _too_many() -> Problem:
    most = counted(MOST_SELECTED, "document is", "documents are")
    return Problem(422, "too-many", f"at most {most} changed at once; narrow the list")
