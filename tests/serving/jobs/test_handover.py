"""Runs over whole sources are handed to Prefect's deployments where an API is configured; small writes are not."""

import pytest

from parquetry.flows.orchestration.server import lasting_server
from tests.deployments.served import environment, serving
from tests.prefect_homes import fill_home
from tests.servers.http_app import running_app
from tests.serving.jobs.test_process import PATIENCE, SETTINGS, Process
from tests.serving.web.browsing import Visitor
from tests.serving.web.yard import planned, started

pytestmark = pytest.mark.slow


@pytest.fixture
def deployed(jobs):
    """Serve the deployments of the desk's settings file; yield the service with its API."""
    folder = jobs.docs.parent
    settings = SETTINGS.replace('"corpus"', f'"{folder}/corpus"').replace('uri = "docs"', f'uri = "{folder}/docs"')
    with serving(settings, folder) as service:
        yield service


def test_refresh_and_reindex_are_flow_runs_of_the_deployments(jobs, deployed):
    (jobs.docs / "ash.md").write_text("Ash is light.")
    process = Process(jobs, PREFECT_API_URL=f"{deployed.url}/api")
    try:
        # Planned and started in the dashboard, which leads on to the flow run in Prefect's pages.
        with running_app(jobs.settings) as app:
            visitor = Visitor(app.url)
            page = started(visitor, planned(visitor, source="docs"))
            done = jobs.store.wait(page.response.url.path.rpartition("/")[2], PATIENCE)
            assert (done.kind, done.state, done.detail) == ("refresh", "completed", None)
            page = visitor.open(page.response.url.path)
            assert f"Flow run {done.result['flow_run']} on Prefect" in page.text
            assert f"{deployed.url}/runs/flow-run/{done.result['flow_run_id']}" in page.links
        assert done.result["version"] == jobs.publishes()
        assert jobs.paths() == ["ash.md"]
        run = deployed.api(f"/flow_runs/{done.result['flow_run_id']}")
        assert (run["state_name"], run["name"]) == ("Completed", done.result["flow_run"])

        written = jobs.put("oak.md", "Oak is hard.")
        assert jobs.store.wait(written.id, PATIENCE).state == "completed"
        everything = jobs.ask("reindex", None, documents=["ash.md"], all=False)
        done = jobs.store.wait(everything.id, PATIENCE)
        assert (done.state, done.detail) == ("completed", None)
        assert "reindex" in done.result["flow_run"]

        # A guard of the flow is the reason of the job.
        (jobs.docs / "ash.md").unlink()
        refused = jobs.store.wait(jobs.ask("refresh", None, targets=["docs"]).id, PATIENCE)
        assert (refused.state, refused.reason) == ("failed", "refused")
        assert "--allow-removals" in refused.detail
        assert process.stop() == 0
    finally:
        if process.process.poll() is None:
            process.kill()


def test_job_of_a_killed_process_is_not_handed_over_twice(jobs, deployed):
    (jobs.docs / "ash.md").write_text("Ash is light.")
    first = Process(jobs, PREFECT_API_URL=f"{deployed.url}/api")
    job = jobs.ask("refresh")
    first.until(lambda: (jobs.done(job).progress or {}).get("flow_run_id"))
    handed = jobs.done(job).progress["flow_run_id"]
    first.kill()
    second = Process(jobs, PREFECT_API_URL=f"{deployed.url}/api")
    done = jobs.store.wait(job.id, PATIENCE)
    assert (done.state, done.result["flow_run_id"], done.attempts) == ("completed", handed, 2)
    assert second.stop() == 0


def test_deployment_that_does_not_exist_is_told_with_what_to_do(jobs, tmp_path, monkeypatch):
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    fill_home(tmp_path / "server")
    with lasting_server(tmp_path / "server", 0) as server:
        server.wait()
        process = Process(jobs, PREFECT_API_URL=server.api_url)
        done = jobs.store.wait(jobs.ask("refresh").id, PATIENCE)
        assert (done.state, done.reason) == ("failed", "settings")
        assert "has no deployment refresh/on-demand" in done.detail
        written = jobs.put("oak.md", "Oak is hard.")
        assert jobs.store.wait(written.id, PATIENCE).state == "completed"
        assert process.stop() == 0


def test_api_that_does_not_answer_is_an_outage(jobs):
    process = Process(jobs, PREFECT_API_URL="http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES="0")
    done = jobs.store.wait(jobs.ask("refresh").id, PATIENCE)
    assert (done.state, done.reason) == ("failed", "outage")
    assert "127.0.0.1:9" in done.detail
    assert process.stop() == 0
