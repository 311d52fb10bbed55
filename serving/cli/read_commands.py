"""Commands that read a corpus: `sql`, `documents`, `chunks`, `show`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from parquetry.errors import SettingsError
from parquetry.model import Status
from parquetry.printing import tell, tell_text
from parquetry.serving.cli.filter_options import OrgOption, UserOption, caller_of
from parquetry.serving.cli.options import (
    MOST_RESULTS,
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    VersionOption,
    settings_for,
)
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.cli.sql_guide import print_guide
from parquetry.serving.cli.worst_documents import print_worst
from parquetry.serving.search.known_names import check_namespace
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.database import QueryError, query, rows
from parquetry.storage.lake.snapshot_views import script
from parquetry.storage.search.filters import Filters, restrict
from parquetry.storage.search.locked import bounded

_DOCUMENT = "Id or its beginning, uri, path, source/path, filename, or a glob."


def sql(
    statement: Annotated[str | None, typer.Argument(help="SQL over documents, chunks, texts, runs, failures.")] = None,
    as_script: Annotated[
        bool, typer.Option("--script", help="Print the SQL that creates the views in any DuckDB.")
    ] = False,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Allow no access to other files, the network or settings, and no writes."),
    ] = False,
    user: UserOption = None,
    org: OrgOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL on the corpus.

    A statement can read and write files, unless it runs with --read-only, --user or --org. Without a
    statement, list what there is to query, and how to do it in the DuckDB CLI.
    """
    settings = settings_for(config, corpus)
    caller = caller_of(user, org)
    if caller is not None and (as_script or statement is None):
        raise SettingsError("--user and --org go with a statement; `parquetry export` writes a file for the DuckDB CLI")
    if read_only and (as_script or statement is None):
        raise SettingsError("--read-only goes with a statement")
    try:
        with Reader(settings, version, locked=read_only) as reader:
            if as_script:
                tell_text(script(reader.snapshot).removesuffix("\n"))
                return
            if statement is None:
                print_guide(reader, as_json=as_json)
                return
            if caller is None and not read_only:
                columns, rows = reader.query(statement)
            elif caller is None:
                # The update of the index does not count towards the statement's limits.
                _ = reader.connection
                with bounded():
                    columns, rows = reader.query(statement)
            else:
                from parquetry.storage.search.export import scoped

                visible = Filters(caller=caller)
                with scoped(reader.snapshot, visible, settings.search.language) as connection, bounded():
                    columns, rows = query(connection, statement)
    except QueryError as error:
        raise SettingsError(f"SQL: {error}") from error
    if as_json:
        print_json({"columns": columns, "rows": [list(row) for row in rows]})
    else:
        print_table(columns, rows)


@contextmanager
def _reader(settings: Settings, version: str | None, user: str | None, org: str | None) -> Iterator[Reader]:
    """Yield a reader limited to what a caller may see; unlimited for the operator."""
    caller = caller_of(user, org)
    with Reader(settings, version) as reader:
        if caller is not None:
            restrict(reader.tables, caller)
        yield reader


def documents(
    names: Annotated[list[str] | None, typer.Argument(metavar="DOCUMENT", help=f"{_DOCUMENT} Default: all.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only those.")] = None,
    notes: Annotated[bool, typer.Option("--notes", help="Only documents with notes, and the notes.")] = False,
    worst: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_RESULTS, help="Only so many documents, those read worst, and why."),
    ] = None,
    user: UserOption = None,
    org: OrgOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the documents."""
    if notes and worst is not None:
        raise SettingsError("--notes and --worst are two lists; give one of them")
    settings = settings_for(config, corpus)
    with _reader(settings, version, user, org) as reader:
        check_namespace(reader.tables, settings, namespace, caller_of(user, org))
        found = reader.documents(namespace, status, names or ())
        if notes:
            _print_notes(reader, found, as_json=as_json)
            return
        if worst is not None:
            print_worst(reader, found, worst, as_json=as_json)
            return
    if as_json:
        print_json({"version": reader.snapshot.version, "documents": found})
        return
    if not found:
        tell("No documents.")
        return
    columns = ["status", "path", "title", "pages", "chunks"]
    if any(row["error"] for row in found):
        columns.append("error")
    print_table(columns, [[row[name] for name in columns] for row in found])


def _print_notes(reader: Reader, found: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print the documents processed with workarounds, and their notes."""
    noted: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for note in rows(reader.tables, "SELECT * FROM notes ORDER BY stage, note"):
        told = {name: note[name] for name in ("stage", "note", "run_id", "noted_at")}
        noted[note["namespace"], note["document_id"]].append(told)
    found = [{**row, "notes": notes} for row in found if (notes := noted[row["namespace"], row["document_id"]])]
    if as_json:
        print_json({"version": reader.snapshot.version, "documents": found})
    elif not found:
        tell("No notes on documents.")
    else:
        print_table(
            ("path", "note"), [(row["path"], each["note"]) for row in found for each in row["notes"]], width=120
        )


def chunks(
    document: Annotated[str, typer.Argument(help=_DOCUMENT)],
    user: UserOption = None,
    org: OrgOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the chunks of a document."""
    with _reader(settings_for(config, corpus), version, user, org) as reader:
        found = reader.chunks(reader.document(document)["document_id"])
    if as_json:
        print_json({"version": reader.snapshot.version, "chunks": found})
        return
    columns = ("chunk_index", "kind", "page", "start", "end", "tokens", "headings", "text")
    print_table(columns, [[row[name] for name in columns] for row in found])


def show(
    document: Annotated[str, typer.Argument(help=_DOCUMENT)],
    user: UserOption = None,
    org: OrgOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a document: its properties and its text."""
    with _reader(settings_for(config, corpus), version, user, org) as reader:
        row = reader.document(document)
        text = reader.text(row["document_id"])
    if as_json:
        print_json({"version": reader.snapshot.version, **row, "text": text})
        return
    for name, value in row.items():
        if value not in (None, "", [], "{}"):
            tell(f"{name}: {value}")
    tell()
    tell_text(text if text is not None else "(no text)")
