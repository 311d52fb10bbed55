"""A custom source, served from a repository whose packages have the names of Parquetry's rooms."""

from __future__ import annotations

import pytest

from tests.deployments.served import serving
from tests.sources.notes_package import install_notes_source, write_notes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_custom_source_is_served_and_publishes(workshop, tmp_path):
    """Its entry point is found by the process of the run, too."""
    source = f'[[source]]\nname = "wiki"\nuri = "notes://{write_notes(tmp_path / "wiki.db")}"\nschedule = "0 0 1 1 *"\n'
    settings = f'[corpus]\nroot = "{workshop.settings.corpus.root}"\n[extraction]\nworkers = 1\n{source}'
    with serving(settings, tmp_path, PYTHONPATH=str(install_notes_source(tmp_path))) as service:
        run = service.end_of(service.run("refresh/wiki"))
        assert run["state_type"] == "COMPLETED", run["state"]
        assert (service.process.poll(), sorted(workshop.rows())) == (None, ["a.md", "sub/b.md"])
