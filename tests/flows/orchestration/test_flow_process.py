"""Process that Prefect starts for a run: it is ours only if the run is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from parquetry.flows.orchestration import flow_run
from tests.deployments.served import environment


@pytest.mark.parametrize(("flow_of_process", "is_ours"), [("a", True), ("b", False), (None, False)])
def test_process_is_ours_if_it_serves_the_run_that_begins(tmp_path, flow_of_process, is_ours):
    """Another program's flow may call ours: its processes and its memory are not ours."""
    program = (
        f"from {flow_run.__name__} import begin\nfrom parquetry.freed_memory import owns_process\n"
        "begin()\nprint(owns_process())"
    )
    of_run = {"PREFECT__RUNTIME__FLOW_RUN__ID": "a"}
    of_process = {} if flow_of_process is None else {"PREFECT__FLOW_RUN_ID": flow_of_process}
    told = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path, **of_run, **of_process),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert told.stdout.strip() == str(is_ours)
