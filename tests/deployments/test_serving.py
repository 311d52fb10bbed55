"""`python -m parquetry.deployments`: runs on request, and an orderly end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from tests.deployments.served import PATIENCE, Service, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def service(library, tmp_path) -> Iterator[Service]:
    source = f'[[source]]\nname = "docs"\nuri = "{library.folder}"\nschedule = "0 0 1 1 *"\n'
    settings = f'[corpus]\nroot = "{library.settings.corpus.root}"\n[extraction]\nworkers = 1\n{source}'
    with serving(settings, tmp_path) as service:
        yield service


def test_runs_that_are_asked_for_publish_one_after_the_other_and_the_end_is_clean(service, library):
    (automation,) = service.api("/automations/filter", {})
    assert (automation["name"], automation["trigger"]["within"]) == ("parquetry-zombies", 90)
    # Of two simultaneous runs of a scheduled deployment one does the work; the other is redundant and is cancelled.
    asked = [service.run("refresh/docs"), service.run("refresh/docs")]
    ended = [service.end_of(run) for run in asked]
    assert sorted(run["state_type"] for run in ended) == ["CANCELLED", "COMPLETED"]
    (cancelled,) = [run for run in ended if run["state_type"] == "CANCELLED"]
    assert "concurrency limit" in cancelled["state"]["message"]
    assert library.lake.snapshot().version == 1
    assert len(library.rows()) == 3

    # Parameters of a run replace those of the deployment; its settings file stays.
    run = service.end_of(service.run("reindex/on-demand", parameters={"documents": ["0.md", "1.md"]}))
    assert run["state_type"] == "COMPLETED", run["state"]
    assert set(run["tags"]) == {"parquetry", "namespace:default", "source:docs"}
    assert library.lake.snapshot().version == 2
    keys = {each["key"] for each in service.api("/artifacts/filter", {})}
    parts = ("report", "failures", "progress", "sources")
    assert keys == {f"{kind}-{part}-default" for kind in ("refresh", "reindex") for part in parts}

    with urlopen(service.url, timeout=30) as page:
        assert b"<html" in page.read()
    assert "Traceback" not in service.output.read_text()
    # Without a choice of documents nothing is rebuilt; Prefect logs the failure with its traceback.
    refused = service.end_of(service.run("reindex/on-demand", parameters={}))
    assert refused["state_type"] == "FAILED"
    assert 'reindex takes "documents" or "all": true, and neither is given' in refused["state"]["message"]
    assert library.lake.snapshot().version == 2
    service.until(lambda: "\nparquetry.errors.SettingsError: reindex takes" in service.output.read_text())
    logged = len(service.output.read_text())
    # During a run: it ends as cancelled, and nothing is left.
    busy = service.run("reindex/on-demand", parameters={"all": True})
    deadline = time.monotonic() + PATIENCE
    # Earlier, the run's process is only being started: Prefect logs an interrupted start.
    while service.api(f"/flow_runs/{busy}")["state_type"] in ("SCHEDULED", "PENDING"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert service.stop(signal.SIGTERM)
    assert service.process.returncode == 0
    output = service.output.read_text()
    assert output.endswith("Stopped.\n")
    assert "Traceback" not in output[logged:], output[logged:]
    assert "leaked" not in output


def test_server_that_plans_no_runs_is_told_of_once(library, tmp_path):
    """The server's scheduler is off; a failing service reports that only in a log that no one reads."""
    source = f'[[source]]\nname = "docs"\nuri = "{library.folder}"\nschedule = "0 3 * * *"\n'
    settings = f'[corpus]\nroot = "{library.settings.corpus.root}"\n{source}'
    with serving(settings, tmp_path, PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED="false") as service:
        unplanned = "parquetry: refresh/docs has an active schedule and no run is planned for it; the Prefect server's "
        service.until(lambda: unplanned in service.output.read_text())
        (log,) = tmp_path.glob("data/parquetry/*/server.log")
        with log.open("a") as stream:
            stream.write("03:00:44.080 | ERROR   | docket.dependencies - schedule_deployments(){schedule}\n")
            stream.write("sqlalchemy.exc.InvalidRequestError: Can't evaluate bulk DML statement\n")
        failing = "parquetry: the Prefect server's service schedule_deployments fails: sqlalchemy.exc.InvalidRequest"
        service.until(lambda: failing in service.output.read_text())
        # With the deployment paused there is nothing to plan any more.
        deployment = service.api("/deployments/name/refresh/docs")["id"]
        assert service.api(f"/deployments/{deployment}/pause_deployment", {}) is None
        over = "parquetry: refresh/docs has runs planned again, or its schedule was paused"
        service.until(lambda: over in service.output.read_text())
        assert service.output.read_text().count("parquetry:") == 3
