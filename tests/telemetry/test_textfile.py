"""Metrics of runs for the node exporter's textfile collector, as an alert reads them."""

import os
import threading

import pytest
from filelock import FileLock
from prometheus_client.parser import text_string_to_metric_families

from parquetry.errors import OutageError
from parquetry.storage.lake.lake import Lake
from parquetry.telemetry import textfile
from tests.flows.pipelines.test_budget import PRICE, counting
from tests.servers.embedding_server import EmbeddingServer
from tests.workshop import Workshop

FRESH, TRIED = "parquetry_source_last_success_timestamp_seconds", "parquetry_source_last_run_timestamp_seconds"


@pytest.fixture
def workshop(tmp_path):
    made = Workshop(tmp_path)
    made.sections["observability"] = {"textfile": str(tmp_path / "metrics" / "parquetry.prom")}
    (tmp_path / "metrics").mkdir()
    made.write("a.md", "# Ash\n\nAsh is hard.")
    return made


def metrics(workshop):
    """Return (name, labels without the corpus) -> value, as Prometheus reads them."""
    found = {}
    for family in text_string_to_metric_families((workshop.root / "metrics" / "parquetry.prom").read_text()):
        for sample in family.samples:
            assert sample.labels["corpus"] == str(workshop.root / "corpus")
            key = (sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "corpus"))
            assert key not in found
            found[key] = sample.value
    return found


def test_runs_are_told_with_stages_documents_and_cost(workshop):
    with EmbeddingServer(counting) as server:
        embedding = {"base_url": server.url, "api_key": "x", "dimension": 8, "price_per_million_tokens": PRICE}
        workshop.sections |= {"corpus": {"embedder": "openai:m"}, "embedding": embedding}
        first = workshop.refresh()
        workshop.write("broken.docx", "no document")
        workshop.refresh()
    found = metrics(workshop)
    assert found["parquetry_runs_total", "refresh", "completed"] == 2
    assert found["parquetry_run_last_success", "refresh"] == 1
    assert found["parquetry_run_corpus_version",] == 2
    assert found["parquetry_run_last_documents", "refresh", "failed"] == 1
    assert found["parquetry_run_last_documents", "refresh", "added"] == 0
    assert found["parquetry_source_not_indexed_documents", "default", "docs", "failed"] == 1
    assert found["parquetry_cost_usd_total", "default", "embed", "docs"] == pytest.approx(first.work.cost_usd)
    assert found["parquetry_tokens_total", "default", "embed", "docs"] == first.work.tokens > 0
    stages = {key[2] for key in found if key[0] == "parquetry_run_last_stage_seconds"}
    assert {"plan", "process", "publish", "index"} <= stages
    assert found[FRESH, "default", "docs"] == found[TRIED, "default", "docs"]
    assert {file.name for file in (workshop.root / "metrics").iterdir()} == {"parquetry.prom", "parquetry.prom.lock"}
    assert (workshop.root / "metrics" / "parquetry.prom").stat().st_mode & 0o777 == 0o644


def test_run_that_fails_is_told_and_the_last_success_stays(workshop, monkeypatch):
    workshop.refresh()
    before = metrics(workshop)

    def down(*_, **__):
        raise OutageError("the store is away")

    with monkeypatch.context() as broken:
        broken.setattr(Lake, "snapshot", down)
        with pytest.raises(OutageError):
            workshop.refresh()
    found = metrics(workshop)
    assert {key[1:]: value for key, value in found.items() if key[0] == "parquetry_runs_total"} == {
        ("refresh", "completed"): 1,
        ("refresh", "failed"): 1,
    }
    assert found["parquetry_run_last_success", "refresh"] == 0
    assert found[FRESH, "default", "docs"] == before[FRESH, "default", "docs"]
    assert found[TRIED, "default", "docs"] > before[TRIED, "default", "docs"]


def test_source_is_fresh_only_after_a_run_over_all_of_it(workshop):
    workshop.refresh()
    before = metrics(workshop)
    workshop.write("b.md", "# Beech")
    workshop.refresh(targets=(str(workshop.folder / "b.md"),))
    assert metrics(workshop)[FRESH, "default", "docs"] == before[FRESH, "default", "docs"]
    # A guard holds the source back.
    for name in ("a.md", "b.md"):
        (workshop.folder / name).unlink()
    assert workshop.refresh().refused
    found = metrics(workshop)
    assert found[FRESH, "default", "docs"] == before[FRESH, "default", "docs"]
    assert found["parquetry_runs_total", "refresh", "refused"] == 1
    assert found["parquetry_run_last_success", "refresh"] == 0


def test_sources_that_left_the_settings_are_dropped_and_counters_stay(workshop):
    workshop.refresh()
    workshop.sections["source"] = {"name": "other"}
    workshop.refresh()
    found = metrics(workshop)
    assert {key[2] for key in found if key[0] == FRESH} == {"other"}
    assert found["parquetry_runs_total", "refresh", "completed"] == 2


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"parquetry_runs_total{corpus= 1 2 3", b"x" * (textfile.MOST_BYTES + 1)]
)
def test_file_that_is_not_ours_fails_no_run_and_is_named(workshop, content):
    file = workshop.root / "metrics" / "parquetry.prom"
    file.write_bytes(content)
    report = workshop.refresh()
    assert report.version == 1
    (warning,) = report.warnings
    assert str(file) in warning
    if len(content) > textfile.MOST_BYTES:
        assert "is as before" in warning
    else:
        assert metrics(workshop)["parquetry_runs_total", "refresh", "completed"] == 1


def test_place_that_cannot_be_written_fails_no_run(workshop):
    workshop.sections["observability"] = {"textfile": str(workshop.root / "nowhere" / "parquetry.prom")}
    (warning,) = workshop.refresh().warnings
    assert "its folder does not exist (observability.textfile)" in warning
    assert not (workshop.root / "nowhere").exists()


def test_run_does_not_wait_for_another_program_without_end(workshop, monkeypatch):
    monkeypatch.setattr(textfile, "LOCK_SECONDS", 0.01)
    with FileLock(workshop.root / "metrics" / "parquetry.prom.lock"):
        (warning,) = workshop.refresh().warnings
    assert "another program holds" in warning


def test_runs_at_once_are_all_counted(workshop):
    """Each reads what the others wrote; a reader never sees half a file."""
    workshop.refresh()
    with_others = [threading.Thread(target=workshop.refresh) for _ in range(2)]
    for each in with_others:
        each.start()
    while any(each.is_alive() for each in with_others):
        assert metrics(workshop)["parquetry_runs_total", "refresh", "completed"] >= 1
        os.sched_yield()
    for each in with_others:
        each.join()
    assert metrics(workshop)["parquetry_runs_total", "refresh", "completed"] == 3
