"""The flow `maintenance`: upkeep of a corpus, run by Prefect."""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger, runtime
from prefect.client.schemas.objects import State
from prefect.states import Completed

from parquetry.errors import ParquetryError
from parquetry.flows.orchestration.flow_run import begin, failed, settings_of_run, without_index
from parquetry.flows.orchestration.namespace_lock import one_run_at_a_time
from parquetry.flows.orchestration.parameters import MaintenanceParameters
from parquetry.flows.pipelines.maintenance import report_json, run_maintenance
from parquetry.masked_output import masked_errors
from parquetry.storage.files.layout import layout_of

_USUAL = MaintenanceParameters()
_WORK = "maintenance"
"""kind of work, of which one run at a time holds a corpus; runs of other kinds go on"""


def _run_name() -> str:
    return f"maintenance-{runtime.flow_run.scheduled_start_time:%Y%m%d-%H%M%S}"


@flow(name="maintenance", flow_run_name=_run_name, validate_parameters=True, persist_result=False)
def maintenance(
    parameters: MaintenanceParameters = _USUAL, config: str | None = None, corpus: str | None = None
) -> dict[str, Any] | State[Any]:
    """Compact a corpus and delete the files that no kept version is read from; nothing where there is nothing to do.

    Args:
        parameters: from when on there is something to do.
        config: settings file where the flow runs; default parquetry.toml in its working folder.
        corpus: folder of the corpus; overrides the file.
    """
    begin()
    try:
        settings = settings_of_run(config, corpus)
        root = layout_of(settings.corpus.root).root
        with masked_errors(), one_run_at_a_time(root, {"all"}, _WORK):
            report = run_maintenance(settings, parameters.least_files)
    except ParquetryError as error:
        return failed(error)
    if report is None or report.is_idle:
        message = f"Nothing to do: {'there is no corpus yet' if report is None else 'the corpus is compact'}."
        get_run_logger().info(message)
        return Completed(message=message)
    get_run_logger().info("Corpus %s: version %d, %s.", root, report.version, report.summary())
    return without_index(report.index_error) if report.index_error else report_json(report)
