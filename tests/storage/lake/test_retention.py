"""Tags and the horizon are changed one after another, and never lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from parquetry.errors import DamagedCorpus, PublishConflict, SettingsError
from parquetry.storage.lake import change_log, retention
from parquetry.storage.lake.retention import add_tag, delete_tag, raise_horizon, read_retention
from tests.storage.shelf import Shelf

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    shelf = Shelf(tmp_path_factory.mktemp("published") / "corpus")
    for number in range(5):
        shelf.publish({"oak.md": [f"the oak of {number}"]})
    return shelf


@pytest.fixture
def shelf(published, tmp_path):
    return published.copied_to(tmp_path / "corpus")


@pytest.fixture
def layout(shelf):
    return shelf.lake.layout


def tags(layout):
    return {tag.name: tag.version for tag in read_retention(layout).tags}


def test_corpus_without_tags_keeps_everything_and_has_no_table_for_them(shelf, layout):
    kept = read_retention(layout)
    assert (kept.tags, kept.horizon) == ((), 0)
    assert not Path(layout.table("retention")).exists()
    assert shelf.texts(0) == {}


def test_tag_is_read_in_place_of_a_version(shelf, layout):
    add_tag(layout, "audit", 2, NOW)
    assert shelf.texts("audit") == shelf.texts(2) == shelf.texts("2") == {"oak.md": ["the oak of 1"]}
    (tag,) = read_retention(layout).tags
    assert (tag.name, tag.version, tag.at) == ("audit", 2, NOW)


def test_tag_keeps_its_version_below_the_horizon(shelf, layout):
    add_tag(layout, "audit", 2, NOW)
    assert raise_horizon(layout, 4, NOW).horizon == 4
    assert shelf.texts("audit") == {"oak.md": ["the oak of 1"]}
    with pytest.raises(SettingsError, match=r"version 3 of corpus .* is not kept any more: its oldest are 4 and those"):
        shelf.lake.snapshot(3)
    delete_tag(layout, "audit", NOW)
    with pytest.raises(SettingsError, match=r"version 2 of corpus .* is not kept any more"):
        shelf.lake.snapshot(2)


def test_horizon_never_falls(layout):
    raise_horizon(layout, 4, NOW)
    assert raise_horizon(layout, 2, NOW).horizon == 4
    assert read_retention(layout).changes.last == 1


def test_version_below_the_horizon_cannot_be_tagged(layout):
    raise_horizon(layout, 4, NOW)
    with pytest.raises(SettingsError, match="not kept any more"):
        add_tag(layout, "late", 3, NOW)
    assert tags(layout) == {}


def test_tag_of_another_version_is_refused_and_of_the_same_changes_nothing(layout):
    add_tag(layout, "audit", 2, NOW)
    add_tag(layout, "audit", 2, NOW)
    assert read_retention(layout).changes.last == 1
    with pytest.raises(SettingsError, match="tag audit names version 2; delete it first"):
        add_tag(layout, "audit", 3, NOW)


def test_unknown_tag_is_refused_with_those_that_exist(shelf, layout):
    with pytest.raises(SettingsError, match="no tag 'adit'; it has none"):
        shelf.lake.snapshot("adit")
    add_tag(layout, "audit", 2, NOW)
    for act in (lambda: shelf.lake.snapshot("adit"), lambda: delete_tag(layout, "adit", NOW)):
        with pytest.raises(SettingsError, match="no tag 'adit'; it has audit"):
            act()


@pytest.mark.parametrize("name", ["", "7", "-x", "a b", "a/b", "é", "x" * 101, "a\n"])
def test_name_that_is_none_is_refused(layout, name):
    with pytest.raises(SettingsError, match="a name has letters"):
        add_tag(layout, name, 2, NOW)


@pytest.mark.parametrize("moment", ["before-the-commit", "during-the-commit"])
def test_version_that_is_given_up_meanwhile_is_not_tagged(shelf, layout, monkeypatch, moment):
    """Both were decided on the same state; the second is decided again."""
    place, name = (retention, "append_change") if moment == "before-the-commit" else (change_log, "commit")
    real, raced = getattr(place, name), []

    def act(*arguments, **options):
        if not raced:
            raced.append(True)
            raise_horizon(layout, 4, NOW)
        return real(*arguments, **options)

    monkeypatch.setattr(place, name, act)
    with pytest.raises(SettingsError, match="not kept any more"):
        add_tag(layout, "late", 3, NOW)
    assert tags(layout) == {}
    assert len(list(Path(layout.table("retention")).glob("*.parquet"))) == 1


def test_changes_that_keep_losing_give_up_with_one_line(layout, monkeypatch):
    add_tag(layout, "first", 1, NOW)

    def commit(*_, **__):
        raise change_log.CommitFailedError("a concurrent transaction")

    monkeypatch.setattr(change_log, "commit", commit)
    with pytest.raises(PublishConflict, match="8 times meanwhile; what is kept was not changed; try again"):
        add_tag(layout, "second", 2, NOW)
    assert tags(layout) == {"first": 1}


def test_damaged_table_stops_what_could_give_versions_up(shelf, layout):
    add_tag(layout, "audit", 2, NOW)
    (file,) = Path(layout.table("retention")).glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[60] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedCorpus, match=file.name):
        raise_horizon(layout, 4, NOW)
    with pytest.raises(DamagedCorpus, match="the versions that are kept are not known"):
        shelf.lake.snapshot(2)
    assert shelf.texts() == {"oak.md": ["the oak of 4"]}
