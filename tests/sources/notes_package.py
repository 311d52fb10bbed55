"""The example of `docs/sources-custom.md`, installed as a package, and a file for it to read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.documentation import blocks_of

PAGE = "docs/sources-custom.md"
NOTES = [("a.md", "# Ä", 1, 0), ("sub/b.md", "two", 1, 0), ("sub/unfinished.md", "three", 1, 1)]


def install_notes_source(folder: Path) -> Path:
    """Install the page's module into a new folder for `sys.path`; return that folder."""
    (module,) = [block.code for block in blocks_of(PAGE) if block.language == "python"]
    (registration,) = [block.code for block in blocks_of(PAGE) if "entry-points" in block.code]
    installed = folder / "site"
    about = installed / "notes_source-1.0.dist-info"
    about.mkdir(parents=True)
    (installed / "notes_source.py").write_text(module, "utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: notes-source\nVersion: 1.0\n", "utf-8")
    table, entry = registration.strip().splitlines()
    assert table == '[project.entry-points."parquetry.sources"]'
    (about / "entry_points.txt").write_text(f"[parquetry.sources]\n{entry.replace(chr(34), '')}\n", "utf-8")
    return installed


def write_notes(file: Path) -> Path:
    """Create the file of notes: two finished ones and a draft."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE notes(path TEXT, body TEXT, version INTEGER, changed REAL, draft INTEGER)")
        database.executemany("INSERT INTO notes VALUES (?, ?, ?, 1.5e9, ?)", NOTES)
    return file
