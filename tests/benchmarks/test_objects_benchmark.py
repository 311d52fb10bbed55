"""The benchmark of many objects runs and counts correctly."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.object_gets import main as gets
from benchmarks.objects import fill, run
from benchmarks.objects import main as objects
from tests.servers.seaweed import S3Server


def test_a_plan_is_measured_with_its_requests(s3_server: S3Server, tmp_path: Path) -> None:
    bucket = s3_server.bucket()
    fill(s3_server, bucket, range(3))
    measured = run(s3_server, bucket, ["plan"], tmp_path)
    assert (measured["exit_code"], measured["documents"]["added"]) == (0, 3)
    assert measured["requests"] == {"LIST": 1}
    assert measured["peak_pss_mb"] > 10


@pytest.mark.slow
def test_objects_are_added_to_a_corpus_that_has_some(tmp_path: Path) -> None:
    measured = objects(["--objects", "5", "--first", "2", "--name", "added", "--results", str(tmp_path)])["steps"]
    assert [measured[step]["documents"]["added"] for step in ("first", "plan", "full", "unchanged")] == [2, 3, 3, 0]
    assert (tmp_path / "added.json").is_file()


@pytest.mark.slow
def test_gets_of_each_way_are_measured(tmp_path: Path) -> None:
    measured = gets(["--turns", "1", "--results", str(tmp_path)])["processor milliseconds of a GET"]
    ways = ("obstore", "our session", "s3fs as it comes", "boto3")
    assert {way: len(times) for way, times in measured.items()} == dict.fromkeys(ways, 1)
    assert (tmp_path / "object-gets.json").is_file()
