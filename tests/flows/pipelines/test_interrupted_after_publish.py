"""Ctrl-C after the publish of a run: what is published is not told as unpublished."""

import pytest

from parquetry.flows.pipelines import pipeline
from parquetry.serving.cli.main import run
from parquetry.storage.lake.lake import Lake

SETTINGS = '[corpus]\nroot = "corpus"\n[[source]]\nname = "docs"\nuri = "docs"\n'


def interrupting(*_):
    raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parquetry.toml").write_text(SETTINGS)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "oak.md").write_text("Oak is hard.")
    return tmp_path


@pytest.mark.parametrize("place", [(pipeline, "refresh_index"), (Lake, "record")], ids=["indexing", "recording"])
def test_interrupt_after_the_publish_says_what_was_published(folder, monkeypatch, capfd, place):
    monkeypatch.setattr(*place, interrupting)
    assert run(["refresh", "--direct"]) == 130
    assert capfd.readouterr().err.splitlines()[-1] == "parquetry: interrupted; version 1 was published"
    assert Lake(str(folder / "corpus")).snapshot().version == 1


def test_interrupt_before_the_publish_says_that_nothing_was(folder, monkeypatch, capfd):
    assert run(["refresh", "--direct"]) == 0
    (folder / "docs" / "elm.md").write_text("Elm is tough.")
    monkeypatch.setattr(Lake, "publish", interrupting)
    assert run(["refresh", "--direct"]) == 130
    assert capfd.readouterr().err.splitlines()[-1] == "parquetry: interrupted; nothing was published"
