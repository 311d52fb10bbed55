"""Callers and filters of a search: the visible documents are determined before anything is ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from parquetry.errors import SettingsError, first_line
from parquetry.model import What
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.database import Connection, reading, sql_string
from parquetry.storage.lake.knowledge_views import answers
from parquetry.storage.search.attribute_conditions import AttributeFilter, attribute_sql
from parquetry.storage.search.metadata_conditions import MetadataComparison, metadata_sql
from parquetry.storage.search.where import parse_where

TYPED_PATH = r"replace(path, '\x21', '!')"
"""SQL equivalent of `parquetry.sources.names.typed` for a path"""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a search: sees public documents, those of the organization, and the user's own."""

    user_id: str | None = None
    org_id: str | None = None


@dataclass(frozen=True, slots=True)
class Subset:
    """Part of a namespace."""

    namespace: str
    folder: str | None = None
    """folder of uploads; None for the whole namespace"""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on documents; a document must meet all of them."""

    namespaces: tuple[str, ...] = ()
    """any of these; empty for all"""
    filename: str | None = None
    """glob over the file name or the path within the source"""
    tags: tuple[str, ...] = ()
    """a document must carry all of them"""
    media_type: str | None = None
    caller: Caller | None = None
    """None for the operator, who sees everything"""
    any_tags: tuple[str, ...] = ()
    """a document must carry at least one of them; empty for no condition"""
    source: str | None = None
    """name of the document's source"""
    since: datetime | None = None
    """modified then or later; with a time zone"""
    until: datetime | None = None
    """modified before; with a time zone"""
    metadata: tuple[tuple[str, str], ...] = ()
    """dotted path into the metadata, and its value: as text, or as an item of a list"""
    where: str | None = None
    """SQL expression over the columns of the view `documents`"""
    what: What = "documents"
    """content type: documents, entries, or both in one ranking"""
    comparisons: tuple[MetadataComparison, ...] = ()
    """conditions on values of the metadata; all must hold"""
    user_id: str | None = None
    """documents of this user"""
    origin: str | None = None
    """name of the document's source, or `source` in its metadata"""
    subsets: tuple[Subset, ...] = ()
    """a document must be in one of them; empty for no condition"""
    attributes: AttributeFilter | None = None
    """condition on attributes and metadata"""

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise SettingsError(f"{name} {moment.isoformat()} has no time zone; write 2031-03-01T09:30Z")
        for path in (*(path for path, _ in self.metadata), *(each.path for each in self.comparisons)):
            if not all(path.split(".")):
                raise SettingsError(
                    f"{path!r} is no path into metadata; write keys between single dots, as author.name"
                )


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """SQL with its bound values."""

    sql: str
    parameters: tuple[Any, ...] = ()


COLUMNS = ("revision", "document_id", "embedder")
"""columns of a visible document that a search needs"""


def visible_statements(
    filters: Filters, documents: str = "documents", columns: Sequence[str] = COLUMNS, table: str = "visible"
) -> list[SqlStatement]:
    """Return the statements that fill a temporary table with the documents that may answer.

    Permissions are applied before everything that can fail: an expression of the caller's is only ever computed for
    documents that the caller may see, so its errors reveal nothing about others.

    Args:
        filters: the caller and the conditions.
        documents: a relation of current documents with at least the columns of the view `documents`.
        columns: columns of that relation for the table.
        table: name of the table; an existing one is replaced.

    Raises:
        SettingsError: `filters.where` is not a valid filter expression.
    """
    certain = _certain(filters)
    if filters.where is None and filters.attributes is None and not filters.metadata and not filters.comparisons:
        return [_create(table, columns, documents, certain)]
    uncertain = _Conditions()
    needed = dict.fromkeys(columns)
    for path, value in filters.metadata:
        needed["metadata"] = None
        uncertain.add(metadata_sql(MetadataComparison(path, "is", (value,)), uncertain.bind))
    for comparison in filters.comparisons:
        needed["metadata"] = None
        uncertain.add(metadata_sql(comparison, uncertain.bind))
    if filters.attributes is not None:
        needed["metadata"] = None
        uncertain.add(attribute_sql(filters.attributes, uncertain.bind))
    if filters.where is not None:
        where = parse_where(filters.where)
        needed.update(dict.fromkeys(where.columns))
        uncertain.add(where.sql)
    # A temporary table instead of a subquery, whose conditions the optimizer may compute in any order.
    return [
        _create("permitted", tuple(needed), documents, certain),
        _create(table, columns, "permitted AS documents", uncertain),
        SqlStatement("DROP TABLE temp.permitted"),
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
        connection: connection of the search.
        filters: as in `visible_statements`, like the remaining arguments.
        documents: relation of current documents.
        columns: columns of the table.
        table: name of the table.

    Raises:
        SettingsError: `filters.where` is not a valid filter expression, or cannot be computed for a document.
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
"""columns of a decision about the session it came from"""


def restrict(connection: Connection, caller: Caller) -> None:
    """Restrict the views of documents, entries, sessions and decisions to what a caller may see.

    For a decision from another user's session, the caller sees its effect on entries, but not the session.

    For queries of this program. SQL that the caller writes could read the tables below the views; see
    `parquetry.storage.search.export.scoped`.

    Args:
        connection: connection from `connect_snapshot`.
        caller: the caller of all further reads.
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
    # The other views look these up by name at each read.
    for view, selected in columns.items():
        connection.execute(f"ALTER VIEW {view} RENAME TO every_{view}")
        connection.execute(f"CREATE VIEW {view} AS SELECT {selected}")


def seen_by(organization: str, user: str) -> str:
    """Return the SQL condition for visibility, the only such rule.

    Args:
        organization: SQL of the caller's organization, or NULL.
        user: SQL of the caller's user name, or NULL.
    """
    return (
        f"(visibility = 'public' OR (visibility = 'organization' AND org_id = {organization})"
        f" OR (visibility = 'individual' AND user_id = {user}))"
    )


def permitted(filters: Filters) -> SqlStatement:
    """Return the condition on documents to list: those of `filters` that cannot fail, and failed documents, too."""
    conditions = _certain(filters, indexed=False)
    return SqlStatement(conditions.sql, tuple(conditions.parameters))


def _certain(filters: Filters, *, indexed: bool = True) -> _Conditions:
    """Return the conditions that cannot fail, whatever a document contains."""
    conditions = _Conditions()
    bind, add = conditions.bind, conditions.add
    if indexed:
        add("revision <> 0")
    add(answers(filters.what))
    if filters.caller is not None:
        # An empty name matches no user.
        add(seen_by(bind(filters.caller.org_id or None), bind(filters.caller.user_id or None)))
    if filters.namespaces:
        add(f"list_contains({bind(list(filters.namespaces))}, namespace)")
    _add_columns(filters, conditions)
    return conditions


def _add_columns(filters: Filters, conditions: _Conditions) -> None:
    """Add the conditions on single columns."""
    bind, add = conditions.bind, conditions.add
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
    if filters.user_id is not None:
        add(f"user_id = {bind(filters.user_id)}")
    if filters.origin is not None:
        name = bind(filters.origin)
        add(f"(source = {name} OR json_extract_string(metadata, '/source') = {name})")
    if filters.subsets:
        add(f"({' OR '.join(_within(subset, bind) for subset in filters.subsets)})")
    if filters.since is not None:
        add(f"modified_at >= {bind(filters.since)}")
    if filters.until is not None:
        add(f"modified_at < {bind(filters.until)}")


def _within(subset: Subset, bind: Callable[[Any], str]) -> str:
    """Return a condition: a document is in a part of a namespace."""
    inside = f"namespace = {bind(subset.namespace)}"
    if subset.folder is None:
        return inside
    return f"({inside} AND source = {bind(UPLOADS)} AND starts_with(path, {bind(f'{subset.folder}/')}))"


class _Conditions:
    """Conditions that must all hold, and their bound values."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.parameters: list[Any] = []

    @property
    def sql(self) -> str:
        return " AND ".join(self._conditions)

    def bind(self, value: Any) -> str:
        """Bind a value to the statement; return its placeholder."""
        self.parameters.append(value)
        return f"${len(self.parameters)}"

    def add(self, condition: str) -> None:
        self._conditions.append(condition)


def _create(table: str, columns: Sequence[str], relation: str, conditions: _Conditions) -> SqlStatement:
    return SqlStatement(
        f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {', '.join(columns)} FROM {relation} WHERE {conditions.sql}",
        tuple(conditions.parameters),
    )
