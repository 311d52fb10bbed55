"""A custom source, served from a repository whose packages have the names of Parquetry's rooms."""

from __future__ import annotations

import pytest

from tests.deployments.served import serving
from tests.sources.notes_package import install_notes_source, write_notes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TELL_MEMORY = """
import atexit, os, pathlib, sys

def tell():
    from parquetry.freed_memory import owns_process
    pool = sys.modules["pyarrow"].default_memory_pool().backend_name
    pathlib.Path(__file__).with_name("memory.txt").write_text(f"{pool} {owns_process()}")

if "PREFECT__FLOW_RUN_ID" in os.environ:
    atexit.register(tell)
"""
"""has the process of a run tell at its end who manages its memory"""


def test_custom_source_is_served_and_publishes(workshop, tmp_path, monkeypatch):
    """Its entry point is found by the process of the run, too, which returns freed memory as commands do."""
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    source = f'[[source]]\nname = "wiki"\nuri = "notes://{write_notes(tmp_path / "wiki.db")}"\nschedule = "0 0 1 1 *"\n'
    settings = f'[corpus]\nroot = "{workshop.settings.corpus.root}"\n[extraction]\nworkers = 1\n{source}'
    site = install_notes_source(tmp_path)
    (site / "sitecustomize.py").write_text(TELL_MEMORY)
    memory = site / "memory.txt"
    with serving(settings, tmp_path, PYTHONPATH=str(site)) as service:
        run = service.end_of(service.run("refresh/wiki"))
        assert run["state_type"] == "COMPLETED", run["state"]
        assert (service.process.poll(), sorted(workshop.rows())) == (None, ["a.md", "sub/b.md"])
        service.until(lambda: memory.exists() and memory.read_text())
    assert memory.read_text() == "system True"
