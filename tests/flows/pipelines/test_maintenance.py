"""Maintenance does what is due, and writes nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from parquetry.flows.pipelines.maintenance import report_json, run_maintenance
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.analysis.folder import newest_analysis

pytestmark = pytest.mark.slow


def every_file(corpus: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in corpus.rglob("*") if path.is_file()}


def test_corpus_that_does_not_exist_yet_needs_none(workshop):
    assert run_maintenance(workshop.settings) is None
    assert not (workshop.root / "corpus").exists()


def test_corpus_with_few_files_is_left_as_it_is(workshop):
    workshop.write("oak.md", "The oak is dried.")
    workshop.refresh()
    workshop.write("oak.md", "The oak is oiled.")
    workshop.refresh()
    before = every_file(workshop.root / "corpus")
    report = run_maintenance(workshop.settings)
    assert report.is_idle
    assert every_file(workshop.root / "corpus") == before


def test_corpus_with_as_many_files_as_named_is_compacted_once(workshop):
    workshop.write("oak.md", "The oak is dried.")
    workshop.refresh()
    workshop.write("elm.md", "The elm is sawn.")
    workshop.refresh()
    rows = workshop.rows()
    report = run_maintenance(workshop.settings, least=2)
    told = report_json(report)
    assert (told["version"], told["files_before"]["chunks"], told["files_after"]["chunks"]) == (3, 2, 1)
    assert "compacted" in report.summary()
    assert workshop.rows() == rows
    assert run_maintenance(workshop.settings, least=2).is_idle
    assert workshop.refresh().documents.unchanged == 2


def test_analysis_that_was_asked_for_once_is_kept_up_to_date(workshop):
    workshop.write("oak.md", "The oak is dried.")
    workshop.refresh()
    assert run_maintenance(workshop.settings).analyzed is None
    analyze(workshop.lake.snapshot(), workshop.settings.search)
    assert run_maintenance(workshop.settings).is_idle
    workshop.write("elm.md", "The elm is sawn.")
    version = workshop.refresh().version
    report = run_maintenance(workshop.settings)
    assert (report.analyzed, report.is_idle) == (version, False)
    assert f"analyzed version {version}" in report.summary()
    assert newest_analysis(workshop.lake.layout, workshop.settings.search).version == version
