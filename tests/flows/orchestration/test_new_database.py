"""The database of a Prefect server in a new home, made before it starts."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest


def made(home, *command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    ours, held_open = os.pipe()
    try:
        return subprocess.run(
            [sys.executable, "-m", *command],
            env={**environment, **home},
            stdin=ours,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(held_open)


def by_parquetry(home):
    # `version` itself makes no database.
    return made(home, "parquetry.flows.orchestration.parent_watch", "version")


def schema(path):
    """The definition of each table and index, in which the order of constraints is Prefect's chance, and its rows."""
    with closing(sqlite3.connect(path)) as database:
        held = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        versions = database.execute("SELECT * FROM alembic_version").fetchall()
        tables = [name for name, sql in held if sql.startswith("CREATE TABLE")]
        rows = {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone() for name in tables}
    return {name: sorted(re.findall(r"[^,\s]+", sql)) for name, sql in held}, versions, rows


@pytest.mark.slow
def test_database_is_the_one_that_prefect_makes(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    by_parquetry({"PREFECT_HOME": str(ours)})
    made({"PREFECT_HOME": str(theirs)}, "prefect", "server", "database", "upgrade", "-y")
    assert schema(ours / "prefect.db") == schema(theirs / "prefect.db")


def test_database_that_is_there_is_left_to_prefect(tmp_path):
    (tmp_path / "prefect.db").write_bytes(b"")
    by_parquetry({"PREFECT_HOME": str(tmp_path)})
    assert (tmp_path / "prefect.db").read_bytes() == b""


@pytest.mark.slow
def test_database_of_another_release_of_prefect_is_left_to_it(tmp_path):
    released = "import prefect.server.database.dependencies as released; del released.temporary_database_config\n"
    (tmp_path / "sitecustomize.py").write_text(released, "utf-8")
    done = by_parquetry({"PREFECT_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)})
    assert "Prefect's server has to make its database itself" in done.stderr
    assert "Version:" in done.stdout
    assert not (tmp_path / "prefect.db").exists()


@pytest.mark.slow
def test_reason_why_the_database_cannot_be_made_is_told(tmp_path):
    url = f"sqlite+aiosqlite:///{tmp_path / 'missing' / 'prefect.db'}"
    with pytest.raises(subprocess.CalledProcessError) as failed:
        by_parquetry({"PREFECT_HOME": str(tmp_path), "PREFECT_SERVER_DATABASE_CONNECTION_URL": url})
    assert "unable to open database file" in failed.value.stderr


@pytest.mark.slow
@pytest.mark.parametrize("url", ["postgresql+asyncpg://127.0.0.1:1/oak", "sqlite+aiosqlite:///:memory:"])
def test_database_of_another_kind_is_left_to_prefect(tmp_path, url):
    by_parquetry({"PREFECT_HOME": str(tmp_path), "PREFECT_SERVER_DATABASE_CONNECTION_URL": url})
    assert not list(tmp_path.glob("*.db"))
