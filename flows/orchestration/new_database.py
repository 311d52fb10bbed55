"""The database of a Prefect server in a new home, made by Prefect's own migrations in one thread.

Prefect's server hands each of some 30,000 small steps to another thread, and waits for it. Each change of a table reads
the definitions of all tables that it refers to, and of those that they refer to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import provide_database_interface, temporary_database_config
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL


def create_database() -> None:
    """Create the database of the Prefect server that this process is to run, if it is a SQLite file and not there."""
    url = sa.make_url(PREFECT_API_DATABASE_CONNECTION_URL.value())
    if url.get_backend_name() != "sqlite" or not url.database or ":memory:" in url.database:
        return
    if Path(url.database).exists():
        return
    engine = _Engine(url)
    try:
        with temporary_database_config(_OneThread(engine)), _tables_read_alone():
            asyncio.run(provide_database_interface().create_db())
    finally:
        engine.engine.dispose()


@contextmanager
def _tables_read_alone() -> Iterator[None]:
    """Let a migration that changes a table read only its definition: names suffice of tables that it refers to."""
    batch: Callable[..., Any] = Operations.batch_alter_table

    def batch_alone(
        self: Operations, *given: Any, reflect_kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        return batch(self, *given, reflect_kwargs={"resolve_fks": False, **(reflect_kwargs or {})}, **options)

    Operations.batch_alter_table = batch_alone  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Operations.batch_alter_table = batch  # type: ignore[method-assign]


class _Engine:
    """Asynchronous engine, as far as Prefect's migrations use it."""

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self.engine = sa.create_engine(url.set(drivername="sqlite"), paramstyle="named")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[_Connection]:
        with self.engine.connect() as connection:
            yield _Connection(connection)


class _Connection:
    """Connection, as far as Prefect's migrations use it."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    async def run_sync(self, function: Callable[[sa.Connection], None]) -> None:
        function(self._connection)


class _OneThread(AioSqliteConfiguration):
    """Prefect's configuration of SQLite, with a synchronous engine."""

    def __init__(self, engine: _Engine) -> None:
        super().__init__(engine.url.render_as_string(hide_password=False))
        self._engine = engine
        sa.event.listen(engine.engine, "connect", self._set_up)
        sa.event.listen(engine.engine, "begin", self.begin_sqlite_stmt)

    async def engine(self) -> Any:
        return self._engine

    def _set_up(self, connection: Any, record: Any) -> None:
        # Prefect begins transactions itself.
        connection.isolation_level = None
        self.setup_sqlite(connection, record)
