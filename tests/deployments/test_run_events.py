"""Events of runs reach the server, where automations wait for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.deployments.served import PATIENCE
from tests.servers.embedding_server import EmbeddingServer, refusal

KEY = "sk-1234567890abcdef1234567890abcdef"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def refresh(file):
    command = [sys.executable, "-m", "parquetry.serving.cli.main", "refresh", "--config", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def events(server, name):
    found = server.api("/events/filter", {"filter": {"event": {"name": [name]}}, "limit": 50})
    return found["events"]


def test_what_is_published_refused_or_failed_is_an_event_of_its_flow_run(server, library, tmp_path):
    file, root = tmp_path / "parquetry.toml", library.settings.corpus.root
    source = f'[[source]]\nname = "docs"\nuri = "{library.folder}"\n'
    guard = "[refresh]\nmax_removed_documents = 1\n"
    file.write_text(f'[corpus]\nroot = "{root}"\n[extraction]\nworkers = 1\n{guard}{source}')
    count = len(list(library.folder.iterdir()))

    assert refresh(file).returncode == 0
    assert refresh(file).returncode == 0, "and nothing is published"
    for path in library.folder.iterdir():
        path.unlink()
    assert refresh(file).returncode == 3
    library.write("new.md", "# New\n\nOne more.\n")
    other = tmp_path / "other.toml"
    with EmbeddingServer(lambda _: refusal(401, f"wrong key {KEY}")) as locked:
        service = f'[embedding]\nbase_url = "{locked.url}"\napi_key = "{KEY}"\nattempts = 1\ndimension = 8\n'
        corpus = f'[corpus]\nroot = "{tmp_path / "other"}"\nembedder = "openai:m"\n'
        other.write_text(f"{corpus}[extraction]\nworkers = 1\n{service}{source}")
        assert refresh(other).returncode == 4

    # The server stores events in order.
    server.until(lambda: events(server, "parquetry.source.failed"))
    (failed,) = events(server, "parquetry.source.failed")
    assert failed["resource"]["prefect.resource.id"] == "parquetry.source.docs"
    assert failed["payload"]["source"] == "docs"
    assert "wrong key" in failed["payload"]["problem"]
    assert KEY not in str(failed)
    (refused,) = events(server, "parquetry.run.refused")
    assert "--allow-removals" in refused["payload"]["problem"]
    first, *more = sorted(events(server, "parquetry.published"), key=lambda each: each["occurred"])
    assert first["resource"]["prefect.resource.id"] == f"parquetry.corpus.{root}"
    told = first["payload"]
    assert (told["namespaces"], told["version_before"], told["version"]) == (["default"], 0, 1)
    assert (told["documents"]["added"], told["cost_usd"]) == (count, 0.0)
    assert {each["resource"]["prefect.resource.id"] for each in more} <= {f"parquetry.corpus.{tmp_path / 'other'}"}
    related = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in first["related"]}
    assert related["flow-run"].startswith("prefect.flow-run.")
    assert "prefect.tag.parquetry" in {each["prefect.resource.id"] for each in first["related"]}
