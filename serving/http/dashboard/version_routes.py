"""Pages of versions: their list, one of them, and restoring it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.errors import SettingsError
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import AdminCaller, PublishedParts
from parquetry.serving.http.dashboard.forms import CheckedForm
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import RUNS
from parquetry.serving.http.operation_routes import demand_everything
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.service.writing import submit
from parquetry.serving.web.versions import ListedVersion, changed_documents, listed_versions, restore_preview
from parquetry.storage.database import Connection, rows
from parquetry.storage.lake.history import Publish
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.retention import read_retention
from parquetry.storage.lake.run_views import run_views

router = APIRouter(include_in_schema=False)
VERSIONS = f"{RUNS}/versions"
SHOWN = 25
"""versions on one page"""
_MOST = 2_000
"""versions that can be paged through"""
Number = Annotated[int, Path(ge=0, lt=2**63)]


@router.get(VERSIONS)
def list_versions(
    request: Request,
    caller: AdminCaller,
    parts: PublishedParts,
    number: Annotated[int, Query(alias="page", ge=1, le=_MOST // SHOWN)] = 1,
) -> Response:
    """Show a page of the versions, the newest first."""
    demand_everything(caller)
    publishes = _publishes(parts)
    shown = publishes[(number - 1) * SHOWN : number * SHOWN]
    with run_views(Lake(parts.settings.corpus.root)) as connection:
        listed = _listed(parts, connection, shown, publishes[0].version if publishes else 0)
    return page(
        request,
        "versions.html",
        versions=listed,
        more=len(publishes) > number * SHOWN,
        number=number,
    )


def _publishes(parts: Resources) -> list[Publish]:
    with parts.follower.reader() as reader:
        return reader.history(_MOST)


def _listed(parts: Resources, connection: Connection, shown: Sequence[Publish], current: int) -> list[ListedVersion]:
    """Return versions as a page lists them, with a connection of `run_views`."""
    named = [each.run_id for each in shown if each.run_id]
    found = rows(connection, "SELECT * FROM runs WHERE run_id IN (SELECT unnest($1::VARCHAR[]))", [named])
    kept = read_retention(Lake(parts.settings.corpus.root).layout)
    return listed_versions(shown, {row["run_id"]: row for row in found}, kept, current)


@contextmanager
def _version(parts: Resources, number: int) -> Iterator[tuple[ListedVersion, Connection]]:
    """Yield a version, and a connection of `run_views`."""
    publishes = _publishes(parts)
    found = [each for each in publishes if each.version == number]
    if not found:
        raise NotVisible("invalid-value", f"no version {number}; the page of versions lists them")
    with run_views(Lake(parts.settings.corpus.root)) as connection:
        yield _listed(parts, connection, found, publishes[0].version)[0], connection


def _check_version(parts: Resources, number: int) -> None:
    with _version(parts, number):
        pass


@router.get(f"{VERSIONS}/{{version}}")
def show_version(request: Request, version: Number, caller: AdminCaller, parts: PublishedParts) -> Response:
    """Show what a version changed."""
    demand_everything(caller)
    with _version(parts, version) as (shown, connection):
        documents, total = changed_documents(connection, shown.run_id)
    may_restore = not parts.settings.serve.read_only and shown.kept and not shown.current
    return page(request, "version.html", version=shown, documents=documents, total=total, may_restore=may_restore)


@router.get(f"{VERSIONS}/{{version}}/restore")
def confirm_restore(request: Request, version: Number, caller: AdminCaller, parts: PublishedParts) -> Response:
    """Show what restoring a version would change, and ask."""
    demand_everything(caller)
    with _version(parts, version) as (shown, connection):
        try:
            preview = restore_preview(connection, Lake(parts.settings.corpus.root), version)
        except SettingsError as error:
            raise NotVisible("invalid-value", str(error)) from error
    return page(request, "restore.html", version=shown, preview=preview)


@router.post(f"{VERSIONS}/{{version}}/restore")
async def restore_version(
    request: Request, version: Number, caller: AdminCaller, parts: PublishedParts, _: CheckedForm
) -> Response:
    """Restore a version."""
    demand_everything(caller)
    await in_thread(_check_version, parts, version)
    record = Recorded(request, caller, "run.asked", None)
    job = await in_thread(submit, parts, caller, "restore", None, {"version": version})
    record.write(status=303, target=f"restore {job.id}")
    return redirect(f"{RUNS}/jobs/{job.id}")
