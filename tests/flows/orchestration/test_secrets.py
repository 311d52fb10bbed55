"""A run through a real Prefect server leaves no secret in its database, its logs or anywhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.pipelines.test_planted_secrets import DOCS, KEY, SECRETS, repeated, settings
from tests.prefect_homes import fill_home
from tests.servers.embedding_server import EmbeddingServer, refusal
from tests.written_bytes import everything_written, holding

pytestmark = pytest.mark.slow

PATIENCE = 240
"""maximum seconds for any step on a busy machine"""


@pytest.fixture
def environment(tmp_path) -> Iterator[dict[str, str]]:
    """An environment with all paths below two folders; the path for temporary files is short enough for sockets."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "XDG_"))}
    places = {name: str(tmp_path / name) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    for place in places.values():
        Path(place).mkdir()
    paths = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryDirectory(prefix="pq-", dir="/tmp") as short:
        yield {**kept, **places, "TMPDIR": short, "OPENAI_API_KEY": KEY, "PYTHONPATH": paths}


@pytest.mark.parametrize("status", [401, 500])
def test_secret_that_a_service_repeats_is_not_in_what_prefect_keeps(tmp_path, environment, status):
    home = tmp_path / "XDG_CACHE_HOME" / "parquetry" / "prefect-1"
    if status == 500:
        # The other run's server creates its database.
        fill_home(home)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "0.md").write_text("Count the boards.")
    with EmbeddingServer(lambda request: refusal(status, repeated(request))) as server:
        settings(tmp_path, server.url, DOCS)
        run = subprocess.run(
            [sys.executable, "-m", "parquetry.serving.cli.main", "refresh", "-v"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            umask=0o022,
            check=False,
        )
        assert server.requests, run.stderr[-1500:]
    assert run.returncode == 4
    assert "***" in run.stdout + run.stderr
    assert [name for name, secret in SECRETS.items() if secret in run.stdout + run.stderr] == []
    assert holding(tmp_path, SECRETS) == holding(Path(environment["TMPDIR"]), SECRETS) == []
    kept = dict(everything_written(home))
    # The message was reported and stored: in states, logs and artifacts.
    assert kept["values of prefect.db"].count(b"no such key: ") >= 3
    assert home.stat().st_mode & 0o777 == 0o700
    open_to_others = [file.name for file in home.rglob("*") if file.is_file() and file.stat().st_mode & 0o077]
    assert open_to_others == []
