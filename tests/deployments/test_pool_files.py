"""The files for work pools and containers are valid for a Prefect server, Docker and this project."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from parquetry.flows.orchestration.server import HEARTBEAT, HEARTBEAT_SECONDS, KEPT_OPEN, LASTING
from parquetry.settings.runner import RunSettings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployments"
PATIENCE = 120


def load(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text("utf-8"))


def prefect(api: str, *arguments: str) -> str:
    environment = {**os.environ, "PREFECT_API_URL": api, "PARQUETRY_POOL": "documents", "PARQUETRY_CONFIG": "kb.toml"}
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_server_takes_all_deployments_of_the_pool(prefect_api):
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="documents", type="process"))
        prefect(prefect_api, "deploy", "--all", "--prefect-file", str(FOLDER / "prefect.yaml"))
        nights = {"refresh/nightly": ["0 3 * * *"], "sessions/nightly": ["0 4 * * *"]}
        nights |= {"maintenance/nightly": ["0 5 * * *"]}
        for name in (*nights, *(f"{flow}/on-demand" for flow in ("refresh", "reindex", "sessions", "maintenance"))):
            found = client.read_deployment_by_name(name)
            assert found.work_pool_name == "documents"
            flow = name.partition("/")[0]
            assert found.entrypoint == f"parquetry.flows.{'refresh' if flow == 'reindex' else flow}.{flow}"
            assert found.parameters == {"config": "kb.toml"}
            assert found.global_concurrency_limit.limit == 1
            # Paths of the deploying machine do not occur: the worker may run anywhere.
            assert found.pull_steps == [{"prefect.deployments.steps.set_working_directory": {"directory": "."}}]
            assert found.concurrency_options.collision_strategy == ("CANCEL_NEW" if name in nights else "ENQUEUE")
            assert [schedule.schedule.cron for schedule in found.schedules] == nights.get(name, [])
        shared = client.read_deployment_by_name(RunSettings().deployment)
        assert shared.work_pool_name == "documents"
        assert shared.entrypoint == "parquetry.flows.batches.batches"
        assert shared.global_concurrency_limit is None, "batches of a run are processed at the same time"


def test_entrypoints_are_flows_of_that_name():
    from prefect.flows import Flow

    for deployment in load("prefect.yaml")["deployments"]:
        module, _, name = deployment["entrypoint"].rpartition(".")
        flow = getattr(import_module(module), name)
        assert isinstance(flow, Flow)
        assert flow.name == name
        assert "parquetry" in deployment["tags"], "notifications would miss its runs"
        assert set(deployment["parameters"]) <= set(flow.parameters.properties)


def test_image_copies_what_exists_and_every_package_of_the_project():
    text = (FOLDER / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    copied = [source for line in re.findall(r"^COPY (.+)$", text, re.M) for source in shlex.split(line)[:-1]]
    assert all((ROOT / source).exists() for source in copied), copied
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = {pattern.rstrip("*") for pattern in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(copied)
    instructions = {line.split()[0] for line in text.splitlines() if line and not line.startswith(("#", " "))}
    assert instructions <= {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "CMD"}
    assert text.index("USER parquetry") < text.index("\nCMD ")


def test_variables_of_compose_are_settings_of_prefect_with_values_that_it_takes(monkeypatch):
    """Prefect ignores a variable that it does not know."""
    import prefect.settings

    for service in load("compose.yaml")["services"].values():
        for name, value in service.get("environment", {}).items():
            if name.startswith("PREFECT_"):
                assert hasattr(prefect.settings, name), name
                monkeypatch.setenv(name, re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value))
    settings = prefect.settings.Settings()
    assert settings.server.services.db_vacuum.enabled_vacuum_types >= {"events", "flow_runs"}
    assert settings.server.services.db_vacuum.retention_period.days == 30
    assert settings.flows.heartbeat_frequency == HEARTBEAT_SECONDS
    url = settings.server.database.connection_url
    assert url.get_secret_value() == "postgresql+asyncpg://prefect:prefect@database:5432/prefect"


def test_commands_of_image_and_compose_exist():
    commands = [service["command"] for service in load("compose.yaml")["services"].values() if "command" in service]
    image = re.search(r'^CMD (\["python".*\])$', (FOLDER / "Dockerfile").read_text("utf-8"), re.M)
    assert image is not None
    commands.append(yaml.safe_load(image.group(1)))
    assert len(commands) == 4
    helps = {}
    for command in commands:
        words = command[2:] if command[0] == "python" else command
        name = tuple(word for word in words if re.fullmatch(r"[a-z.]+", word))[:3]
        module = ["parquetry.deployments"] if name[0] == "parquetry.deployments" else ["prefect", *name[1:]]
        if tuple(module) not in helps:
            helps[tuple(module)] = subprocess.run(
                [sys.executable, "-m", *module, "--help"], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
            ).stdout
        for option in (word for word in command if word.startswith("--")):
            assert option in helps[tuple(module)], (command, option)


def test_services_of_compose_fit_together():
    compose = load("compose.yaml")
    services = compose["services"]
    assert set(services) == {"database", "server", "deployments", "worker"}
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        if "build" in service:
            assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        named = [volume.partition(":")[0] for volume in service["volumes"] if not volume.startswith(("$", ".", "/"))]
        assert set(named) <= set(compose["volumes"])
    assert services["worker"]["environment"].keys() >= {"PREFECT_API_URL", "PARQUETRY_POOL", "PARQUETRY_CONFIG"}
    # As of the server that `python -m parquetry.deployments` starts.
    assert services["server"]["environment"].items() >= {**KEPT_OPEN, **LASTING}.items()
    beats = {services[name]["environment"][HEARTBEAT] for name in ("deployments", "worker")}
    assert beats == {str(HEARTBEAT_SECONDS)}
    # Access to the API means permission to run code: it is not offered to the network.
    assert all(port.startswith("127.0.0.1:") for port in services["server"]["ports"])


def test_prefect_takes_the_template_of_a_kubernetes_pool(prefect_api):
    """The server checks that each placeholder of the job is a variable; the values are those that the page names."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import PrefectHTTPStatusError

    template = json.loads((FOLDER / "kubernetes.json").read_text("utf-8"))
    variables = template["variables"]["properties"]
    assert variables["env"]["default"] == {HEARTBEAT: str(HEARTBEAT_SECONDS)}
    assert variables["backoff_limit"]["default"] == 0
    pod = template["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 60
    (container,) = pod["containers"]
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/etc/parquetry", "/var/cache/parquetry"}
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    with get_client(sync_client=True) as client:
        pool = WorkPoolCreate(name="pods", type="kubernetes", base_job_template=template)
        assert client.create_work_pool(pool).base_job_template == template
        del variables["image"]
        broken = pool.model_copy(update={"name": "broken", "base_job_template": template})
        with pytest.raises(PrefectHTTPStatusError, match="422"):
            client.create_work_pool(broken)
