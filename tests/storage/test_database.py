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


@pytest.mark.parametrize(
    "empty",
    ["CREATE TEMP TABLE kept AS FROM made LIMIT 0", "INSERT INTO kept FROM made WHERE number < 0"],
    ids=["created", "inserted"],
)
@pytest.mark.parametrize("order", ["", " ORDER BY name"], ids=["as-they-come", "sorted"])
def test_rows_written_after_none_in_a_transaction_are_there(empty, order):
    """DuckDB 2.0.0 loses them with two threads or more, before and after the commit, and reports their number."""
    with database.open_duckdb() as connection:
        connection.execute("SET threads = 2")
        connection.execute("CREATE TABLE made AS SELECT i AS number, i % 1000 AS name FROM range(200_000) AS t(i)")
        if empty.startswith("INSERT"):
            connection.execute("CREATE TABLE kept (number BIGINT, name BIGINT)")
        with database.transaction(connection):
            connection.execute(empty)
            connection.execute(f"INSERT INTO kept FROM made{order}")
            assert connection.execute("SELECT sum(number) FROM kept").fetchall() == [(199_999 * 100_000,)]
        assert connection.execute("SELECT sum(number) FROM kept").fetchall() == [(199_999 * 100_000,)]
