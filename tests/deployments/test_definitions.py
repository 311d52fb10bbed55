"""The deployments defined by a settings file, and their protection against overlapping runs."""

from __future__ import annotations

import pytest

from parquetry.deployments.definitions import check_deployments, deployments_of
from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings, parse_settings

ON_DEMAND = ("refresh/on-demand", "reindex/on-demand", "maintenance/on-demand")


def settings(*sources: dict[str, str]) -> Settings:
    named = [{"uri": "./docs", **source} for source in sources]
    return parse_settings({"source": named}, "test")


def by_name(found) -> dict[str, object]:
    assert len({deployment.full_name for deployment in found}) == len(found)
    return {deployment.full_name: deployment for deployment in found}


def test_each_source_with_a_schedule_gets_its_own_deployment(tmp_path):
    file = tmp_path / "parquetry.toml"
    found = by_name(
        deployments_of(
            settings(
                {"name": "handbook", "schedule": "0 * * * *"},
                {"name": "tickets/open", "schedule": "*/5 * * * *", "namespace": "hr"},
                {"name": "archive"},
            ),
            file,
        )
    )
    assert set(found) == {"refresh/handbook", "refresh/hr-tickets-open", *ON_DEMAND}
    tickets = found["refresh/hr-tickets-open"]
    assert [each.schedule.cron for each in tickets.schedules] == ["*/5 * * * *"]
    assert tickets.parameters == {
        "config": str(file.resolve()),
        "parameters": {"targets": ["tickets/open"], "namespace": "hr"},
    }
    assert set(tickets.tags) == {"parquetry", "namespace:hr", "source:tickets/open"}
    assert tickets.entrypoint == "parquetry.flows.refresh.refresh"
    assert not found["refresh/on-demand"].schedules


def test_source_of_sessions_is_learned_from_and_not_refreshed():
    found = by_name(
        deployments_of(
            settings(
                {"name": "handbook", "schedule": "0 * * * *"},
                {"name": "handbook", "namespace": "hr", "content": "sessions", "schedule": "0 4 * * *"},
            ),
            None,
        )
    )
    assert set(found) == {"refresh/handbook", "sessions/hr-handbook", "sessions/on-demand", *ON_DEMAND}
    learned = found["sessions/hr-handbook"]
    assert learned.entrypoint == "parquetry.flows.sessions.sessions"
    assert learned.parameters["parameters"] == {"targets": ["handbook"], "namespace": "hr"}
    form = found["sessions/on-demand"]._parameter_openapi_schema.definitions["SessionsParameters"]
    assert set(form["properties"]) == {"namespace", "targets", "review", "retry_quarantined"}


def test_runs_of_one_deployment_never_overlap():
    found = by_name(deployments_of(settings({"name": "handbook", "schedule": "0 * * * *"}), None))
    strategies = {
        name: (each.concurrency_limit, each.concurrency_options.collision_strategy) for name, each in found.items()
    }
    assert strategies == {
        "refresh/handbook": (1, "CANCEL_NEW"),
        **dict.fromkeys(ON_DEMAND, (1, "ENQUEUE")),
    }


def test_form_of_an_on_demand_reindex_describes_every_field():
    reindex = by_name(deployments_of(settings(), None))["reindex/on-demand"]
    schema = reindex._parameter_openapi_schema
    assert reindex.enforce_parameter_schema
    fields = schema.definitions["ReindexParameters"]["properties"]
    assert set(fields) == {"namespace", "documents", "all", "embeddings_only", "budget_usd"}
    assert all(field["title"] and field["description"] for field in fields.values())
    assert schema.definitions["ReindexParameters"]["additionalProperties"] is False
    assert {name: each["description"] for name, each in schema.properties.items()}.keys() == {
        "parameters",
        "config",
        "corpus",
    }


@pytest.mark.parametrize(
    "names", [("a/b", "a b"), ("on-demand",)], ids=["sources-that-look-alike", "source-named-on-demand"]
)
def test_two_deployments_of_one_name_are_refused(names):
    with pytest.raises(SettingsError, match="deployments would be named refresh/"):
        deployments_of(settings(*({"name": name, "schedule": "0 * * * *"} for name in names)), None)


def test_schedule_of_a_past_year_is_refused():
    """Prefect's scheduler fails on it, for every deployment."""
    past = settings({"name": "handbook", "schedule": "0 3 1 1 * 0 2020"})
    with pytest.raises(SettingsError, match=r"source handbook: schedule '0 3 1 1 \* 0 2020' does not fire after"):
        check_deployments(past)


def test_without_a_settings_file_the_flows_take_the_default():
    refresh, *_ = deployments_of(settings(), None)
    assert refresh.parameters == {"config": None, "parameters": {}}


def test_maintenance_is_deployed_if_it_has_a_schedule(tmp_path):
    file = tmp_path / "parquetry.toml"
    wanted = parse_settings({"retention": {"schedule": "0 5 * * *"}}, "test")
    upkeep = by_name(deployments_of(wanted, file))["maintenance/scheduled"]
    assert [each.schedule.cron for each in upkeep.schedules] == ["0 5 * * *"]
    assert upkeep.parameters == {"config": str(file.resolve()), "parameters": {}}
    assert upkeep.entrypoint == "parquetry.flows.maintenance.maintenance"
    assert upkeep.concurrency_options.collision_strategy == "CANCEL_NEW"
    assert set(upkeep._parameter_openapi_schema.definitions["MaintenanceParameters"]["properties"]) == {"least_files"}


def test_schedule_of_maintenance_that_never_fires_again_is_refused():
    past = parse_settings({"retention": {"schedule": "0 3 1 1 * 0 2020"}}, "test")
    with pytest.raises(SettingsError, match=r"^\[retention\]: schedule .* does not fire after"):
        check_deployments(past)
    with pytest.raises(SettingsError, match=r"schedule 'nightly' of \[retention\] is not a cron expression"):
        parse_settings({"retention": {"schedule": "nightly"}}, "test")
