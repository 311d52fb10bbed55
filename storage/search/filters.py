"""Who asks and which documents may answer: decided before anything is ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from parquetry.errors import SettingsError, first_line
from parquetry.model import What
from parquetry.storage.database import Connection, reading, sql_string
from parquetry.storage.lake.knowledge_views import answers
from parquetry.storage.search.where import parse_where

TYPED_PATH = r"replace(path, '\x21', '!')"
"""SQL: `parquetry.sources.names.typed` of a path"""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a search runs: sees public documents, those of the organization, and the user's own."""

    user_id: str | None = None
    org_id: str | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents may answer: those that meet all of it."""

    namespaces: tuple[str, ...] = ()
    """any of them; empty for all"""
    filename: str | None = None
    """glob over the file's name or its path within the source"""
    tags: tuple[str, ...] = ()
    """a document must carry all of them"""
    media_type: str | None = None
    caller: Caller | None = None
    """None is the operator, who sees everything"""
    any_tags: tuple[str, ...] = ()
    """a document must carry at least one of them; empty for no matter"""
    source: str | None = None
    """name of the source it comes from"""
    since: datetime | None = None
    """modified then or later; with a time zone"""
    until: datetime | None = None
    """modified before; with a time zone"""
    metadata: tuple[tuple[str, str], ...] = ()
    """dotted path into the metadata, and the value there: as text, or as one of a list"""
    where: str | None = None
    """SQL expression over the columns of the view `documents`"""
    what: What = "documents"
    """whether documents answer, or entries, or both in one ranking"""

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise SettingsError(f"{name} {moment.isoformat()} has no time zone; write 2031-03-01T09:30Z")
        for path, _ in self.metadata:
            if not all(path.split(".")):
                raise SettingsError(
                    f"{path!r} is no path into metadata; write keys between single dots, as author.name"
                )


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with the values that are bound to it."""

    sql: str
    parameters: tuple[Any, ...] = ()


COLUMNS = ("revision", "document_id", "embedder")
"""what a search has to know of a visible document"""


def visible_statements(
    filters: Filters, documents: str = "documents", columns: Sequence[str] = COLUMNS, table: str = "visible"
) -> list[Statement]:
    """What fills a temporary table with the documents that may answer.

    Permissions are applied before everything that can fail: an expression of the caller's is only ever computed for
    documents that the caller may see, so its errors cannot tell of others.

    Args:
        filters: who asks, and for what.
        documents: a relation of current documents with at least the columns of the view `documents`.
        columns: of that relation, that the table gets.
        table: its name; one that is there is replaced.

    Raises:
        SettingsError: `filters.where` is not what a filter may be.
    """
    certain = _certain(filters)
    if filters.where is None and not filters.metadata:
        return [_create(table, columns, documents, certain)]
    uncertain = _Conditions()
    needed = dict.fromkeys(columns)
    for path, value in filters.metadata:
        needed["metadata"] = None
        uncertain.add(_metadata_is(path, uncertain.bind(value)))
    if filters.where is not None:
        where = parse_where(filters.where)
        needed.update(dict.fromkeys(where.columns))
        uncertain.add(where.sql)
    # A temporary table and not a subquery: the optimizer may compute the conditions of a subquery in any order.
    return [
        _create("permitted", tuple(needed), documents, certain),
        _create(table, columns, "permitted AS documents", uncertain),
        Statement("DROP TABLE temp.permitted"),
    ]


def select_visible(
    connection: Connection,
    filters: Filters,
    documents: str = "documents",
    columns: Sequence[str] = COLUMNS,
    table: str = "visible",
) -> None:
    """Fill a temporary table of the connection with the documents that may answer.

    Args:
        connection: that the search goes on with.
        filters: as for `visible_statements`, like the rest.
        documents: relation of current documents.
        columns: that the table gets.
        table: its name.

    Raises:
        SettingsError: `filters.where` is not what a filter may be, or cannot be computed for a document.
        StorageError: the documents cannot be read.
    """
    read, *computed = visible_statements(filters, documents, columns, table)
    with reading():
        connection.execute(read.sql, list(read.parameters))
    try:
        for statement in computed:
            connection.execute(statement.sql, list(statement.parameters))
    except duckdb.Error as error:
        problem = first_line(error)
        raise SettingsError(f"where {filters.where!r} cannot be computed: {problem}") from error


_OF_SESSION = ("session_id", "session_uri", "session_user", "said_at", "evidence", "text", "reasoning", "candidates")
"""columns of a decision that tell of the session it came from"""


def restrict(connection: Connection, caller: Caller) -> None:
    """Leave in the views about documents, entries, sessions and decisions what a caller may see.

    Of a decision that is somebody else's session's, the caller sees what became of which entry, and not the session.

    For this program's own reading. SQL that the caller writes could ask what is below them:
    `parquetry.storage.search.export.scoped`.

    Args:
        connection: of `connect_snapshot`.
        caller: on whose behalf it reads from now on.
    """
    names = (caller.org_id or None, caller.user_id or None)
    organization, user = ("NULL" if name is None else sql_string(name) for name in names)
    seen, own = seen_by(organization, user), f"coalesce(session_user = {user}, false)"
    hidden = ", ".join(f"CASE WHEN {own} THEN {name} END AS {name}" for name in _OF_SESSION)
    columns = {
        "published": f"* FROM every_published WHERE {seen}",
        "entry_history": f"* FROM every_entry_history WHERE {seen}",
        "decisions": f"* REPLACE ({hidden}) FROM every_decisions WHERE {own} OR (visibility IS NOT NULL AND {seen})",
    }
    # The other views look for these by their names whenever they are read.
    for view, selected in columns.items():
        connection.execute(f"ALTER VIEW {view} RENAME TO every_{view}")
        connection.execute(f"CREATE VIEW {view} AS SELECT {selected}")


def seen_by(organization: str, user: str) -> str:
    """The one rule of who sees what.

    Args:
        organization: SQL of the caller's organization, or NULL.
        user: SQL of the caller's name, or NULL.
    """
    return (
        f"(visibility = 'public' OR (visibility = 'organization' AND org_id = {organization})"
        f" OR (visibility = 'individual' AND user_id = {user}))"
    )


def _certain(filters: Filters) -> _Conditions:
    """Conditions that no content of a document makes fail."""
    conditions = _Conditions()
    bind, add = conditions.bind, conditions.add
    add("revision <> 0")
    add(answers(filters.what))
    if filters.caller is not None:
        # An empty name is nobody's.
        add(seen_by(bind(filters.caller.org_id or None), bind(filters.caller.user_id or None)))
    if filters.namespaces:
        add(f"list_contains({bind(list(filters.namespaces))}, namespace)")
    if filters.filename is not None:
        glob = bind(filters.filename)
        add(f"(filename GLOB {glob} OR path GLOB {glob} OR {TYPED_PATH} GLOB {glob})")
    if filters.tags:
        add(f"list_has_all(tags, {bind(list(filters.tags))})")
    if filters.any_tags:
        add(f"list_has_any(tags, {bind(list(filters.any_tags))})")
    if filters.media_type is not None:
        add(f"media_type = {bind(filters.media_type)}")
    if filters.source is not None:
        add(f"source = {bind(filters.source)}")
    if filters.since is not None:
        add(f"modified_at >= {bind(filters.since)}")
    if filters.until is not None:
        add(f"modified_at < {bind(filters.until)}")
    return conditions


class _Conditions:
    """Conditions that all have to hold, and the values bound to them."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.parameters: list[Any] = []

    @property
    def sql(self) -> str:
        return " AND ".join(self._conditions)

    def bind(self, value: Any) -> str:
        """Give a value to the statement; returns what stands for it."""
        self.parameters.append(value)
        return f"${len(self.parameters)}"

    def add(self, condition: str) -> None:
        self._conditions.append(condition)


def _metadata_is(path: str, value: str) -> str:
    """Whether the metadata has a value at a path, or in the list there."""
    escaped = path.replace("~", "~0").replace("/", "~1").replace("'", "''")
    # A key may hold dots itself, as `dc.title` does.
    pointers = dict.fromkeys((f"/{escaped}", f"/{escaped.replace('.', '/')}"))
    return " OR ".join(
        f"json_extract_string(metadata, '{pointer}') = {value}"
        f" OR list_contains(TRY_CAST(json_extract(metadata, '{pointer}') AS VARCHAR[]), {value})"
        for pointer in pointers
    ).join("()")


def _create(table: str, columns: Sequence[str], relation: str, conditions: _Conditions) -> Statement:
    return Statement(
        f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {', '.join(columns)} FROM {relation} WHERE {conditions.sql}",
        tuple(conditions.parameters),
    )
