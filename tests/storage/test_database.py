"""DuckDB connections that are opened before they are needed."""

import pytest

from parquetry.storage import database


@pytest.fixture
def opened(monkeypatch):
    """Record of the connections that are opened, with none left from before."""
    made, as_written = [], database._opened
    monkeypatch.setattr(database, "_opened", lambda: made.append(as_written()) or made[-1])
    monkeypatch.setattr(database, "_ahead", [])
    yield made
    for connection in made:
        connection.close()


def test_one_connection_is_opened_ahead_however_often_it_is_asked_for(opened):
    for _ in range(3):
        database.open_ahead()
    first = database.open_duckdb()
    assert opened == [first]
    assert first.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
    second = database.open_duckdb()
    assert opened == [first, second]


def test_error_after_a_failed_commit_is_the_one_that_is_told():
    def failing(connection):
        with database.transaction(connection):
            connection.execute("INSERT INTO kept VALUES (1)")
            database.commit_part(connection)
            connection.execute("INSERT INTO kept VALUES (2)")
            connection.execute("ROLLBACK")
            raise ValueError("the disk")

    with database.open_duckdb() as connection:
        connection.execute("CREATE TABLE kept (number INTEGER)")
        with pytest.raises(ValueError, match="the disk"):
            failing(connection)
        assert connection.execute("FROM kept").fetchall() == [(1,)]
