"""Hand a refresh or reindex to its Prefect deployment, and follow the flow run to its end.

Imports Prefect, which takes seconds: only when a Prefect API is configured.
"""

from __future__ import annotations

from typing import Any

from httpx import HTTPError
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelling
from prefect.utilities.urls import url_for

from parquetry.deployments.definitions import ON_DEMAND
from parquetry.errors import OutageError, SettingsError
from parquetry.masking import masked
from parquetry.serving.jobs.context import Failed, JobContext, PutBack
from parquetry.serving.jobs.model import Job
from parquetry.serving.jobs.runs import refresh_request
from parquetry.serving.jobs.write_outcomes import JobOutcome
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.engine.base import Cancelled

LOOK_SECONDS = 1.0
"""seconds between two looks at a flow run"""
GONE_SECONDS = 300.0
"""seconds for which the API may fail before the job does"""
_NAMED = {"Refused": "refused", "Unindexed": "index-not-written"}
"""name of a final state -> reason of the job"""


def hand_over(context: JobContext, job: Job) -> JobOutcome:
    """Run a job's deployment, and wait for the end of the flow run.

    The same job is handed over once: a process that takes it up again follows the same flow run.

    Args:
        context: what jobs share.
        job: a refresh or reindex.

    Raises:
        SettingsError: the deployment does not exist.
        OutageError: the API cannot be reached.
        Cancelled: the job or the flow run was cancelled.
        PutBack: this process is stopping; the flow run goes on.
    """
    with get_client(sync_client=True) as client:
        run, state = _followed(client, context, job, _started(client, context, job))
    name = state.name or state.type.value
    if state.is_cancelled():
        # A run that was ended from outside may have published before.
        told = masked(state.message or "see its log in Prefect")
        raise Cancelled(f"flow run {run.name} was cancelled: {told}")
    done: dict[str, Any] = {**_named(run), "state": name}
    root = context.settings.corpus.root
    if Lake.exists(root):
        done["version"] = Lake(root).snapshot().version
        context.follow(done["version"])
    if state.is_completed() or name == "Unindexed":
        return JobOutcome(done)
    told = masked(state.message or "it gave no reason").removeprefix("Flow run encountered an exception: ")
    return JobOutcome(done, Failed(_NAMED.get(name, f"flow-run-{name.lower()}"), f"flow run {run.name}: {told}"))


def _named(run: FlowRun) -> dict[str, str]:
    """Return name and id of a flow run, and its page in Prefect's UI."""
    page = url_for("flow-run", obj_id=run.id)
    return {"flow_run_id": str(run.id), "flow_run": run.name, **({"flow_run_url": page} if page else {})}


def _started(client: SyncPrefectClient, context: JobContext, job: Job) -> FlowRun:
    name = f"{job.kind}/{ON_DEMAND}"
    try:
        deployment = client.read_deployment_by_name(name)
        return client.create_flow_run_from_deployment(
            deployment.id, parameters=_parameters(context, job), idempotency_key=job.id
        )
    except ObjectNotFound as error:
        raise SettingsError(
            f"the Prefect API {client.api_url} has no deployment {name}; make it with `python -m "
            "parquetry.deployments` or `prefect deploy`, or unset PREFECT_API_URL for the service, which then does "
            "this itself"
        ) from error
    except HTTPError as error:
        raise OutageError(f"the Prefect API {client.api_url} cannot be reached: {error}; try again") from error


def _parameters(context: JobContext, job: Job) -> dict[str, Any]:
    """Return the parameters of the flow; its deployment has the settings file, this process names the corpus."""
    payload = job.payload
    asked: dict[str, Any] = {"namespace": job.namespace}
    if job.kind == "refresh":
        # The targets are checked here, too: the flow takes any.
        refresh_request(context, job)
        asked["targets"] = list(payload.get("targets") or ())
        asked |= {key: bool(payload.get(key)) for key in ("allow_removals", "rehash")}
    else:
        asked["documents"] = list(payload.get("documents") or ())
        asked |= {key: bool(payload.get(key)) for key in ("all", "embeddings_only")}
    if payload.get("budget_usd") is not None:
        asked["budget_usd"] = payload["budget_usd"]
    return {"parameters": asked, "corpus": layout_of(context.settings.corpus.root).root}


def _followed(client: SyncPrefectClient, context: JobContext, job: Job, run: FlowRun) -> tuple[FlowRun, State[Any]]:
    """Wait for the end of a flow run; return it as it is then, and its final state."""
    failed = 0.0
    cancelled = False
    while True:
        try:
            run = client.read_flow_run(run.id)
            failed = 0.0
            if not cancelled and context.is_cancelled(job):
                client.set_flow_run_state(run.id, Cancelling())
                cancelled = True
        except HTTPError as error:
            failed += LOOK_SECONDS
            if failed >= GONE_SECONDS:
                raise OutageError(
                    f"the Prefect API {client.api_url} cannot be reached, so the end of flow run {run.name} is not "
                    f"known: {error}"
                ) from error
        state = run.state
        if state is not None and state.is_final():
            return run, state
        told = "Pending" if state is None else state.name or state.type.value
        context.note(job, {**_named(run), "state": told})
        if context.runs.stopping.wait(LOOK_SECONDS):
            raise PutBack
