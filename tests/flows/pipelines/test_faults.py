"""No fault between a run and its object store loses a document, doubles one, or publishes half a version."""

import pytest

from parquetry.tasks.engine import retries
from tests.fault_schedules import Trial
from tests.servers.fault_proxy import FaultProxy

pytestmark = pytest.mark.slow

SEEDS = range(4)
"""`python -m benchmarks.faults` runs 300 seeds"""


@pytest.fixture
def trial(s3_server, tmp_path, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    with FaultProxy(s3_server.endpoint) as proxy:
        for name, value in {**s3_server.environment(), "AWS_ENDPOINT_URL": proxy.endpoint}.items():
            monkeypatch.setenv(name, value)
        yield Trial(s3_server.client(), s3_server.bucket(), proxy, tmp_path)


def test_no_schedule_of_faults_loses_doubles_or_halves_anything(trial):
    for seed in SEEDS:
        trial.run(seed)
    outcome = trial.outcome
    assert outcome.wrong == []
    assert outcome.schedules == len(SEEDS)
    assert outcome.faults.total() >= 2 * len(SEEDS)
