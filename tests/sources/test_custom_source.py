"""The example of a custom source, taken from its documentation page, installed and used."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from importlib.machinery import PathFinder

import pytest

from parquetry.errors import SettingsError, TransientError
from parquetry.model import Item
from parquetry.sources import registered
from tests.sources.notes_package import install_notes_source, write_notes
from tests.sources.shelf import ACCESS, opened


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """The example as an installed package, and the file that it reads."""
    monkeypatch.syspath_prepend(install_notes_source(tmp_path))
    monkeypatch.delitem(sys.modules, "notes_source", raising=False)
    return write_notes(tmp_path / "wiki.db")


def change(file, statement):
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(statement)


def items(source, prefix=""):
    found = {item.path: item for item in source.scan(prefix)}
    assert all(isinstance(item, Item) for item in found.values())
    return found


def test_registered_source_lists_and_reads(notes):
    source = opened(f"notes://{notes}")
    listed = items(source)
    assert {path: (item.size, item.access) for path, item in listed.items()} == {
        "a.md": (4, ACCESS),
        "sub/b.md": (3, ACCESS),
    }
    assert source.fetch(listed["a.md"]) == (listed["a.md"], "# Ä".encode())
    assert set(items(source, "sub")) == {"sub/b.md"}


def test_its_options_are_read_and_checked(notes):
    assert len(items(opened(f"notes://{notes}", drafts=True))) == 3
    with pytest.raises(SettingsError, match=r"options: .*draft"):
        opened(f"notes://{notes}", draft=True)


def test_it_tells_changes_and_what_vanished(notes):
    source = opened(f"notes://{notes}")
    before = items(source)
    change(notes, "UPDATE notes SET body = 'new', version = 2 WHERE path = 'a.md'")
    change(notes, "DELETE FROM notes WHERE path = 'sub/b.md'")
    assert source.fetch(before["a.md"]) == (items(source)["a.md"], b"new")
    assert items(source)["a.md"].etag != before["a.md"].etag
    with pytest.raises(FileNotFoundError):
        source.fetch(before["sub/b.md"])


def test_its_failures_never_look_like_an_empty_place(notes):
    with pytest.raises(SettingsError, match="unable to open database file; correct its uri"):
        items(opened(f"notes://{notes}-missing"))
    with closing(sqlite3.connect(notes)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TransientError, match="is being written"):
            items(opened(f"notes://{notes}"))


def test_corpus_is_refreshed_with_it(notes, workshop):
    workshop.sections["source"] = {"uri": f"notes://{notes}"}
    assert workshop.refresh().documents.added == 2
    change(notes, "UPDATE notes SET body = 'new', version = 2 WHERE path = 'a.md'")
    report = workshop.refresh()
    assert (report.documents.changed, report.documents.unchanged) == (1, 1)
    row = workshop.rows()["a.md"]
    assert (row.uri, row.status, row.size) == (f"notes://{notes}#a.md", "indexed", 3)


def test_package_in_an_archive_is_found(tmp_path, monkeypatch):
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", install_notes_source(tmp_path))
    monkeypatch.syspath_prepend(packed)
    monkeypatch.delitem(sys.modules, "notes_source", raising=False)
    assert set(items(opened(f"notes://{write_notes(tmp_path / 'wiki.db')}"))) == {"a.md", "sub/b.md"}


def test_packages_that_mention_no_source_are_not_read(tmp_path, monkeypatch):
    """Reading what every package registers took 20 ms of each run."""
    about = tmp_path / "other-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text("[console_scripts]\nother = other:main\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "none"), ""])
    # Other tests may have imported what finds packages in its own way.
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registered, "entry_points", lambda group: pytest.fail(f"asked for {group}"))
    assert list(registered.registered("file")) == []
