"""Pages of jobs: how far one is, what became of it, and its cancellation; plans of runs, and their start."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.datastructures import FormData

from parquetry.plural import counted
from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.http.answers import Recorded
from parquetry.serving.http.callers import AdminCaller, Parts
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import RUNS
from parquetry.serving.http.operation_routes import demand_everything, job_of
from parquetry.serving.http.problems import Problem
from parquetry.serving.jobs.model import Kind
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.cancelling import cancel
from parquetry.serving.service.writing import submit
from parquetry.serving.web.jobs import shown_job

router = APIRouter(include_in_schema=False)
JobId = Annotated[str, Path(max_length=64)]
_MOST_NAMES = 1_000
_LONGEST_NAME = 1_024
_MOST_USD = 1_000_000.0


@router.get(f"{RUNS}/jobs/{{job_id}}")
def show_job(request: Request, job_id: JobId, caller: AdminCaller, parts: Parts) -> Response:
    """Show how far a job is, or what became of it; of a plan, what the run would do."""
    demand_everything(caller)
    job = job_of(parts, caller, job_id)
    asked = job.state == "running" and parts.jobs.cancel_is_asked(job.id)
    budget = parts.settings.refresh.budget_usd
    return page(
        request,
        "run_job.html",
        job=shown_job(job, cancel_asked=asked),
        budget=budget,
        may_run=not parts.settings.serve.read_only,
    )


@router.post(f"{RUNS}/jobs/{{job_id}}/cancel")
def cancel_job(request: Request, job_id: JobId, caller: AdminCaller, parts: Parts, _: CheckedForm) -> Response:
    """Cancel a job: at once if it waits, before its publish if it runs."""
    demand_everything(caller)
    job = job_of(parts, caller, job_id)
    cancel(parts, job)
    Recorded(request, caller, "run.cancelled", job.namespace).write(status=303, target=f"{job.kind} {job.id}")
    return redirect(f"{RUNS}/jobs/{job.id}")


@router.get(f"{RUNS}/plan")
def show_plan_form(
    request: Request,
    caller: AdminCaller,
    parts: Parts,
    source: Annotated[str, Query(max_length=_LONGEST_NAME)] = "",
    run: Annotated[str, Query(max_length=16)] = "refresh",
) -> Response:
    """Show the form to plan a refresh or a reindex."""
    demand_everything(caller)
    names = [each.name for each in parts.settings.source if each.content == "documents"]
    chosen = run if run in ("refresh", "reindex") else "refresh"
    return page(request, "plan.html", sources=names, chosen=source, run=chosen)


@router.post(f"{RUNS}/plan")
async def plan_run(request: Request, caller: AdminCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Plan a run, which writes and spends nothing."""
    demand_everything(caller)
    record = Recorded(request, caller, "run.asked", None)
    job = await in_thread(submit, parts, caller, "plan", None, _payload(fields))
    record.write(status=303, target=f"plan {job.id}")
    return redirect(f"{RUNS}/jobs/{job.id}")


def _payload(fields: FormData) -> dict[str, Any]:
    """Return the payload of a plan, which is that of its run."""
    if text(fields, "run") == "reindex":
        documents = _names(text(fields, "documents").splitlines())
        return {
            "run": "reindex",
            "documents": documents,
            "all": not documents,
            "embeddings_only": bool(text(fields, "embeddings_only")),
        }
    targets = _names([each for each in fields.getlist("source") if isinstance(each, str)])
    options = {name: bool(text(fields, name)) for name in ("allow_removals", "rehash")}
    return {"run": "refresh", "targets": targets, **options}


def _names(given: list[str]) -> list[str]:
    names = list(dict.fromkeys(each.strip() for each in given if each.strip()))
    if len(names) > _MOST_NAMES or any(len(each) > _LONGEST_NAME for each in names):
        most = counted(_MOST_NAMES, "document")
        raise Problem(422, "invalid-request", f"name at most {most}, each in {_LONGEST_NAME} letters")
    return names


@router.post(f"{RUNS}/start")
async def start_run(request: Request, caller: AdminCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Start the run of a plan, as it was planned; the run plans again, so what changed meanwhile counts."""
    demand_everything(caller)
    plan = await in_thread(job_of, parts, caller, text(fields, "plan")[:64])
    if plan.kind != "plan" or plan.state != "completed":
        raise NotVisible("no-such-job", "this is no plan; make one")
    payload = dict(plan.payload)
    kind: Kind = "reindex" if payload.pop("run") == "reindex" else "refresh"
    if kind == "refresh" and text(fields, "allow_removals"):
        payload["allow_removals"] = True
    budget = _budget(text(fields, "budget_usd").strip())
    if budget is not None:
        payload["budget_usd"] = budget
    record = Recorded(request, caller, "run.asked", plan.namespace)
    job = await in_thread(submit, parts, caller, kind, plan.namespace, payload)
    record.write(status=303, target=f"{kind} {job.id}")
    return redirect(f"{RUNS}/jobs/{job.id}")


def _budget(told: str) -> float | None:
    if not told:
        return None
    try:
        budget = float(told.replace(",", "."))
    except ValueError:
        budget = -1.0
    if not 0 <= budget <= _MOST_USD:
        raise Problem(
            422, "invalid-request", "a budget is a number of US dollars, such as 2.50; leave it empty for none"
        )
    return budget
