"""Pages of knowledge entries: their list, one with its history, the undoing of a decision, and learning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import AdminCaller, Parts, PublishedParts, ReadCaller, WriteCaller
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import ENTRIES, RUNS
from parquetry.serving.http.operation_routes import demand_everything
from parquetry.serving.http.writes import failure_of
from parquetry.serving.service.awaiting import after_wait, in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.session_inbox import FOLDER
from parquetry.serving.service.writing import submit
from parquetry.serving.web.cited_messages import cited_messages
from parquetry.serving.web.entries import UndoQuestion, entry_page, listed_entry, undo_question
from parquetry.serving.web.reviews import visible_reviews
from parquetry.storage.database import Connection
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.entry_browsing import STANDINGS, EntryBrowsing, browse_entries
from parquetry.storage.search.filters import Filters, restrict

router = APIRouter(include_in_schema=False)
PAGE = 50
"""entries of a page"""
_KINDS = ("methodology", "preference", "tool", "lesson", "fact")
_LEVELS = ("public", "organization", "individual")
_MOST_CITED = 20
"""decisions whose messages are read again for a page"""
EntryId = Annotated[str, Path(max_length=255)]
DecisionId = Annotated[str, Path(max_length=255)]
Name = Annotated[str, Query(max_length=1024)]
_NOTICES = {
    "undone": "The decision is undone, and that is a decision, too: undo it to take it back.",
    "undoing": "The decision is being undone.",
}


@router.get(ENTRIES)
def list_entries(
    request: Request,
    caller: ReadCaller,
    parts: Parts,
    q: Name = "",
    kind: Name = "",
    level: Name = "",
    namespace: Name = "",
    standing: Name = "live",
    number: Annotated[int, Query(alias="page", ge=1, le=20_000_000)] = 1,
) -> Response:
    """Show a page of the entries."""
    filters = filters_for(caller, None, Filters(namespaces=(namespace,) if namespace else (), what="entries"))
    asked = EntryBrowsing(
        filters,
        q.strip() or None,
        kind if kind in _KINDS else None,
        level if level in _LEVELS else None,
        next((each for each in STANDINGS if each == standing), "live"),
    )
    # The first entries may be learned before anything is published.
    rows, total = ([], 0) if parts.follower.version is None else _browsed(parts, asked, number)
    kept = {"q": q.strip(), "kind": asked.kind, "level": asked.visibility, "namespace": namespace}
    kept |= {"standing": "" if asked.standing == "live" else asked.standing}

    def link(**changed: Any) -> str:
        values = {**kept, "page": number, **changed}
        return f"{ENTRIES}?{urlencode({name: value for name, value in values.items() if value})}"

    return page(
        request,
        "entries.html",
        entries=[listed_entry(row) for row in rows],
        total=total,
        first=(number - 1) * PAGE + 1,
        number=number,
        pages=max(1, -(-total // PAGE)),
        asked={**kept, "standing": asked.standing},
        narrowed=any(kept.values()),
        link=link,
        reviews=len(visible_reviews(parts, caller)),
        may_learn=_may_learn(parts, caller),
    )


def _browsed(parts: Resources, asked: EntryBrowsing, number: int) -> tuple[list[dict[str, Any]], int]:
    with parts.follower.reader() as reader:
        opened = connect_readable(reader.snapshot) if asked.needs_history else reader.index.session()
        with closing(opened) as connection:
            return browse_entries(connection, asked, PAGE, (number - 1) * PAGE)


def _may_learn(parts: Resources, caller: Principal) -> bool:
    learned = any(each.content == "sessions" for each in parts.settings.source)
    everything = caller.may("admin") and caller.sees_everything
    return learned and everything and not parts.settings.serve.read_only


@contextmanager
def _views(parts: Resources, caller: Principal) -> Iterator[Connection]:
    """Yield the entries and decisions that a caller may see."""
    with parts.follower.reader() as reader, closing(connect_readable(reader.snapshot)) as connection:
        limited = caller.caller()
        if limited is not None:
            restrict(connection, limited)
        yield connection


@router.get(f"{ENTRIES}/{{entry_id}}")
def show_entry(
    request: Request, entry_id: EntryId, caller: ReadCaller, parts: PublishedParts, notice: Name = ""
) -> Response:
    """Show an entry: what is known, what contradicts it, and how it came about."""
    with _views(parts, caller) as connection:
        found = entry_page(connection, caller, entry_id)
    inbox = parts.state / FOLDER
    cited = {
        each.id: cited_messages(parts.settings, inbox, each.session_uri, each.evidence)
        for each in found.decisions[-_MOST_CITED:]
        if each.session_uri
    }
    may_write = not parts.settings.serve.read_only
    return page(request, "entry.html", found=found, cited=cited, notice=_NOTICES.get(notice, ""), may_write=may_write)


@router.get(f"{ENTRIES}/decisions/{{decision_id}}/undo")
def confirm_undo(request: Request, decision_id: DecisionId, caller: WriteCaller, parts: PublishedParts) -> Response:
    """Ask before a decision is undone."""
    return page(request, "undo.html", question=_question(parts, caller, decision_id))


def _question(parts: Resources, caller: Principal, decision_id: str) -> UndoQuestion:
    with _views(parts, caller) as connection:
        return undo_question(connection, caller, decision_id)


@router.post(f"{ENTRIES}/decisions/{{decision_id}}/undo")
async def undo_decision(
    request: Request, decision_id: DecisionId, caller: WriteCaller, parts: PublishedParts, _: CheckedForm
) -> Response:
    """Undo a decision."""
    question = await in_thread(_question, parts, caller, decision_id)
    record = Recorded(request, caller, "entries.decided", None)
    job = await in_thread(submit, parts, caller, "undo", None, {"decision_id": question.shown.id})
    record.write(status=303, target=f"undo {job.id}")
    job = await after_wait(parts, job)
    if job.is_final and job.state != "completed":
        raise failure_of(job)
    place = f"{ENTRIES}/{question.entry_id}" if question.entry_id else ENTRIES
    return redirect(f"{place}?notice={'undone' if job.is_final else 'undoing'}")


@router.post(f"{ENTRIES}/learn")
async def learn(request: Request, caller: AdminCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Learn from the sources of sessions, with a review of merges if it is asked for."""
    demand_everything(caller)
    record = Recorded(request, caller, "run.asked", None)
    job = await in_thread(submit, parts, caller, "sessions", None, {"review": bool(text(fields, "review"))})
    record.write(status=303, target=f"sessions {job.id}")
    return redirect(f"{RUNS}/jobs/{job.id}")
