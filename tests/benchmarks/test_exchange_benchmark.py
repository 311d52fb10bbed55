"""The benchmark of exports and imports runs every format, and imports what it exported."""

import json

import pytest

from benchmarks.exchange import FORMATS, main

pytestmark = pytest.mark.slow


def test_each_command_is_measured_at_each_size(tmp_path):
    done = main(["--chunks", "200", "--scratch", str(tmp_path), "--results", str(tmp_path)])
    assert json.loads((tmp_path / "exchange.json").read_text()) == done
    named = [f"export --format {form}" for form in FORMATS]
    assert [(row["command"], row["chunks"]) for row in done["commands"]] == [(name, 200) for name in (*named, "import")]
    assert all(row["peak_rss_mb"] > 50 and row["processor_seconds"] > 0 for row in done["commands"])
