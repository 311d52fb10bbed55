"""DuckDB as this project uses it: connections that fetch nothing, results as rows, errors in one line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import duckdb
import psutil

from parquetry.errors import DamagedCorpus, StorageError, first_line
from parquetry.masking import masked

Connection = duckdb.DuckDBPyConnection
Result = TypeVar("Result")
_ROWS_AT_A_TIME = 200
"""made objects of at once; more take more memory and no less time"""
_ROWS_BETWEEN_LOOKS = 1000
"""fetched before it is looked whether memory is left"""
_HEADROOM = 64 << 20
"""bytes below the limit of the process at which an answer is given up"""
_UNREADABLE = (
    *(duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException),
    # Of some damaged files, after which the DuckDB is of no use any more.
    *(duckdb.InternalException, duckdb.FatalException),
)
_DAMAGE = re.compile(r"the corpus is damaged: .*")
"""what the view of a damaged table says"""


class QueryError(Exception):
    """A SQL statement that DuckDB refused; the text is DuckDB's own, with its suggestions, on one line."""


FAILURES = (duckdb.Error, StorageError, QueryError)
"""what reading something that is damaged raises, among others"""


@contextmanager
def reading() -> Iterator[None]:
    """Say in one line what it means that DuckDB cannot read a corpus.

    Raises:
        DamagedCorpus: a view was used that says what is wrong with its table.
        FilesGaveWay: a file was replaced by another run since it was listed.
        StorageError: a file of the corpus is missing, cut short, or not to be read.
    """
    try:
        yield
    except _UNREADABLE as error:
        _raise_damage(error)
        _raise_if_missing(error)
        raise StorageError(
            f"the corpus cannot be read: {first_line(error)}; `parquetry doctor` tells what is damaged"
        ) from error
    except duckdb.Error as error:
        # What DuckDB makes of an error of a file that it was lent; every other one has a class of its own.
        if type(error) is not duckdb.Error:
            raise
        _raise_if_missing(error)
        raise StorageError(f"the corpus cannot be read: {_end_of_traceback(error)}") from error
    except RuntimeError as error:
        # What DuckDB makes of Ctrl-C.
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def _raise_damage(error: duckdb.Error) -> None:
    """What a view says of its table is said as it is."""
    if said := _DAMAGE.search(str(error)):
        raise DamagedCorpus(said[0]) from error


def _raise_if_missing(error: duckdb.Error) -> None:
    from parquetry.storage.given_way import missing_file, why_missing

    file = missing_file(error)
    if file is not None:
        raise why_missing(file) from error


def _end_of_traceback(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if re.match(r"[\w.]+: ", line)]
    return lines[-1] if lines else first_line(error)


def open_duckdb() -> Connection:
    """A connection that reads local files only and fetches nothing."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    connection.execute(f"SET threads = {os.cpu_count() or 1}")
    connection.execute("SET TimeZone = 'UTC'")
    # It would stand between the lines of whoever reads our output.
    connection.execute("SET enable_progress_bar = false")
    return connection


def rows(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """All rows of a query as dictionaries."""
    with reading():
        result = connection.execute(sql, list(parameters))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


def each_row(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query as dictionaries, a few at a time in memory; the connection is busy until the last one."""
    with reading():
        result = connection.execute(sql, list(parameters))
        names = [column[0] for column in result.description or ()]
        while some := result.fetchmany(_ROWS_AT_A_TIME):
            yield from (dict(zip(names, values, strict=True)) for values in some)


def tuples(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    with reading():
        return connection.execute(sql, list(parameters)).fetchall()


def sql_list(values: Iterable[str]) -> str:
    """A SQL list literal of strings."""
    return "[" + ", ".join(map(sql_string, values)) + "]"


def sql_string(value: str) -> str:
    """A SQL literal of a string."""
    return "'" + value.replace("'", "''") + "'"


def query(connection: Connection, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a statement.

    Returns:
        Column names, and rows.

    Raises:
        FilesGaveWay: a file was replaced by another run since it was listed.
        QueryError: the statement is wrong.
        DamagedCorpus: it uses a view of a table that is damaged.
    """
    try:
        return _interruptible(connection, lambda: _answer(connection, statement))
    except duckdb.Error as error:
        _raise_damage(error)
        _raise_if_missing(error)
        raise QueryError(_refusal(error)) from error


def _answer(connection: Connection, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    result = connection.execute(statement)
    if result is None:
        raise QueryError("there is no statement in it")
    names = [column[0] for column in result.description or ()]
    rows: list[tuple[Any, ...]] = []
    while some := result.fetchmany(_ROWS_BETWEEN_LOOKS):
        rows += some
        if _memory_is_short():
            raise MemoryError
    return names, rows


def _memory_is_short() -> bool:
    """Whether the process comes near its limit: with none left, native code crashes where it should raise."""
    if sys.platform == "win32":
        return False
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit != resource.RLIM_INFINITY and psutil.Process().memory_info().vms > limit - _HEADROOM


def _interruptible(connection: Connection, work: Callable[[], Result]) -> Result:
    """Work of a connection, which Ctrl-C ends: a thread that DuckDB works in hears of it when its task is done."""
    with ThreadPoolExecutor(1, "statement", _raise_once, (connection,)) as thread:
        result = thread.submit(work)
        try:
            return result.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _raise_once(connection: Connection) -> None:
    """Have C++ raise something in this thread, which takes memory the first time: later there may be none left."""
    with suppress(duckdb.Error):
        connection.extract_statements("(")


def _refusal(error: duckdb.Error) -> str:
    """Join the lines of DuckDB's message, which stand above the statement that it repeats, and name the line there."""
    if type(error) is duckdb.Error:
        # What DuckDB makes of an error of a file that it was lent.
        return masked(_end_of_traceback(error))
    message, _, repeated = str(error).strip().partition("\n\n")
    line = re.match(r"LINE (\d+):", repeated)
    where = f" (line {line[1]})" if line and int(line[1]) > 1 else ""
    return masked(" ".join(message.split()) or type(error).__name__) + where
