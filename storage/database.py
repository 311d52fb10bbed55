"""DuckDB helpers: connections without network access, results as rows, errors in one line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import duckdb

from parquetry.errors import DamagedCorpus, StorageError, first_line
from parquetry.masking import masked

Connection = duckdb.DuckDBPyConnection
Result = TypeVar("Result")
_ROWS_AT_A_TIME = 200
"""rows converted to objects at once; a larger number takes more memory and no less time"""
_ROWS_BETWEEN_LOOKS = 1000
"""rows fetched between two checks of the free memory"""
_HEADROOM = 64 << 20
"""bytes below the memory limit of the process at which a result is abandoned"""
_UNREADABLE = (
    *(duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException),
    # Errors of some damaged files, after which the DuckDB instance is unusable.
    *(duckdb.InternalException, duckdb.FatalException),
)
_ahead: list[Future[Connection]] = []
"""connections that are being opened, for the next who need one"""
_DAMAGE = re.compile(r"the corpus is damaged: .*")
"""message of the view of a damaged table"""


class QueryError(Exception):
    """A SQL statement that DuckDB rejected; the text is DuckDB's own, with its suggestions, on one line."""


FAILURES = (duckdb.Error, StorageError, QueryError)
"""exceptions that reading damaged data raises, among others"""


@contextmanager
def reading() -> Iterator[None]:
    """Translate DuckDB errors about unreadable corpus files into one-line errors.

    Raises:
        DamagedCorpus: the statement used a view that reports damage to its table.
        FilesGaveWay: another run has replaced a file since it was listed.
        StorageError: a file of the corpus is missing, truncated or unreadable.
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
        # DuckDB's class for an error of the object-store filesystem; every other error has a class of its own.
        if type(error) is not duckdb.Error:
            raise
        _raise_if_missing(error)
        raise StorageError(f"the corpus cannot be read: {_end_of_traceback(error)}") from error
    except RuntimeError as error:
        # DuckDB's error after Ctrl-C.
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def _raise_damage(error: duckdb.Error) -> None:
    """Raise the message that a view reports about its damaged table, unchanged."""
    if said := _DAMAGE.search(str(error)):
        raise DamagedCorpus(said[0]) from error


def _raise_if_missing(error: duckdb.Error) -> None:
    from parquetry.storage.replaced_files import missing_file, missing_file_error

    file = missing_file(error)
    if file is not None:
        raise missing_file_error(file) from error


def _end_of_traceback(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if re.match(r"[\w.]+: ", line)]
    return lines[-1] if lines else first_line(error)


def open_ahead() -> None:
    """Open the connection that `open_duckdb` returns next in a thread: DuckDB takes 20 ms to set itself up.

    One that waits already is enough: each takes memory.
    """
    if _ahead:
        return
    thread = ThreadPoolExecutor(1, "duckdb")
    _ahead.append(thread.submit(_opened))
    thread.shutdown(wait=False)


def open_duckdb() -> Connection:
    """Open a connection that reads local files only and downloads nothing."""
    with suppress(IndexError):
        return _ahead.pop().result()
    return _opened()


def _opened() -> Connection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    connection.execute(f"SET threads = {os.cpu_count() or 1}")
    connection.execute("SET TimeZone = 'UTC'")
    # The progress bar would appear between the lines of our output.
    connection.execute("SET enable_progress_bar = false")
    return connection


def rows(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Return all rows of a query as dictionaries."""
    with reading():
        result = connection.execute(sql, list(parameters))
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


def each_row(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query as dictionaries, a few in memory at a time; the connection is busy until the last."""
    with reading():
        result = connection.execute(sql, list(parameters))
        names = [column[0] for column in result.description or ()]
        while some := result.fetchmany(_ROWS_AT_A_TIME):
            yield from (dict(zip(names, values, strict=True)) for values in some)


def tuples(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query as tuples."""
    with reading():
        return connection.execute(sql, list(parameters)).fetchall()


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Run many statements in one commit; each commit of its own would wait for the disk."""
    connection.execute("BEGIN")
    with ExitStack() as unfinished:
        unfinished.callback(_roll_back, connection)
        yield
        unfinished.pop_all()
    connection.execute("COMMIT")


def _roll_back(connection: Connection) -> None:
    # A commit that failed has ended the transaction.
    with suppress(duckdb.TransactionException):
        connection.execute("ROLLBACK")


def commit_part(connection: Connection) -> None:
    """Commit what a transaction did so far, and go on in another: DuckDB frees tables that it replaced.

    For a database that is thrown away if the rest fails.

    Args:
        connection: connection within `transaction`.
    """
    connection.execute("COMMIT")
    connection.execute("BEGIN")


def sql_list(values: Iterable[str]) -> str:
    """Return a SQL list literal of strings."""
    return "[" + ", ".join(map(sql_string, values)) + "]"


def sql_string(value: str) -> str:
    """Return a SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


def query(connection: Connection, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a statement.

    Returns:
        Column names and rows.

    Raises:
        FilesGaveWay: another run has replaced a file since it was listed.
        QueryError: the statement is wrong.
        DamagedCorpus: the statement uses a view of a damaged table.
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
    """True if the process is close to its memory limit: beyond it, native code crashes where it should raise."""
    if sys.platform == "win32":
        return False
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return False
    import psutil

    return bool(psutil.Process().memory_info().vms > limit - _HEADROOM)


def _interruptible(connection: Connection, work: Callable[[], Result]) -> Result:
    """Run work on a connection such that Ctrl-C ends it: a DuckDB worker thread notices when its task is done."""
    with ThreadPoolExecutor(1, "statement", _raise_once, (connection,)) as thread:
        result = thread.submit(work)
        try:
            return result.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _raise_once(connection: Connection) -> None:
    """Make C++ raise once in this thread: the first time takes memory, of which none may be left later."""
    with suppress(duckdb.Error):
        connection.extract_statements("(")


def _refusal(error: duckdb.Error) -> str:
    """Join the lines of DuckDB's message above the statement that it repeats, and add the line number in it."""
    if type(error) is duckdb.Error:
        # DuckDB's class for an error of the object-store filesystem.
        return masked(_end_of_traceback(error))
    message, _, repeated = str(error).strip().partition("\n\n")
    line = re.match(r"LINE (\d+):", repeated)
    where = f" (line {line[1]})" if line and int(line[1]) > 1 else ""
    return masked(" ".join(message.split()) or type(error).__name__) + where
