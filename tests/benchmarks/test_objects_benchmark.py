"""The benchmark of many objects runs and counts correctly."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.object_gets import main as gets
from benchmarks.objects import fill, run
from tests.servers.seaweed import S3Server


def test_a_plan_is_measured_with_its_requests(s3_server: S3Server, tmp_path: Path) -> None:
    bucket = s3_server.bucket()
    fill(s3_server, bucket, 3)
    measured = run(s3_server, bucket, ["plan"], tmp_path)
    assert (measured["exit_code"], measured["documents"]["added"]) == (0, 3)
    assert measured["requests"] == {"LIST": 1}
    assert measured["peak_pss_mb"] > 10


@pytest.mark.slow
def test_gets_of_each_way_are_measured(tmp_path: Path) -> None:
    measured = gets(["--turns", "1", "--results", str(tmp_path)])["processor milliseconds of a GET"]
    ways = ("obstore", "our session", "s3fs as it comes", "boto3")
    assert {way: len(times) for way, times in measured.items()} == dict.fromkeys(ways, 1)
    assert (tmp_path / "object-gets.json").is_file()
