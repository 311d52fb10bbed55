"""The command `export`: write a part of the corpus to a file, for DuckDB or for another store."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from parquetry.errors import SettingsError
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.filter_options import (
    FilterOptions,
    NamespacesOption,
    OrgOption,
    UserOption,
    WhereOption,
    caller_of,
)
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, VersionOption, settings_for
from parquetry.serving.cli.output import print_json
from parquetry.serving.search.known_names import check_filters
from parquetry.settings.home import expanded
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.search.filters import Caller, Filters

if TYPE_CHECKING:
    from parquetry.settings.sections import Settings
    from parquetry.storage.exchange.formats import Format
    from parquetry.storage.lake.lake import Snapshot


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write the file to.")],
    user: UserOption = None,
    org: OrgOption = None,
    public: Annotated[bool, typer.Option("--public", help="Only what is public.")] = False,
    everything: Annotated[
        bool, typer.Option("--everything", help="All documents, with who may see them where the format holds it.")
    ] = False,
    form: Annotated[
        Literal["duckdb", "parquet", "jsonl", "chroma", "llamaindex", "pgvector", "qdrant", "beir"],
        typer.Option("--format", help="A database to query, or chunks with their vectors for another store."),
    ] = "duckdb",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of the same name; a database is always replaced.")
    ] = False,
    feedback: Annotated[
        bool, typer.Option("--feedback", help="With --format beir: what users judged, as queries and qrels.")
    ] = False,
    namespace: NamespacesOption = None,
    where: WhereOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export what a caller may see to a separate file.

    A self-contained DuckDB database, or with --format chunks and vectors for another store, or a BEIR corpus.
    """
    from dataclasses import replace

    from parquetry.storage.search.export import export_corpus

    seen_by = _seen_by(caller_of(user, org), public=public, everything=everything)
    filters = replace(FilterOptions(namespace=namespace, where=where).filters(), caller=seen_by)
    if feedback and (form != "beir" or not everything):
        raise SettingsError("--feedback holds questions of all users; it needs --format beir and --everything")
    settings = settings_for(config, corpus)
    snapshot = Lake(settings.corpus.root).snapshot(version)
    if filters.namespaces:
        with closing(connect_snapshot(snapshot)) as connection:
            check_filters(connection, settings, filters)
    if form != "duckdb":
        judged_by = settings if feedback else None
        _export_file(snapshot, filters, expanded(str(folder)), form, judged_by, overwrite=overwrite, as_json=as_json)
        return
    done = export_corpus(snapshot, filters, expanded(str(folder)), settings.search.language)
    if as_json:
        print_json(
            {"file": str(done.path), "version": done.version, "documents": done.documents, "chunks": done.chunks}
        )
        return
    held = f"{counted(done.documents, 'document')}, {counted(done.chunks, 'chunk')}"
    tell(f"Wrote {done.path}: {held} of version {done.version}.")
    tell("It holds nothing of other documents, and no runs or failures. To open it (pip install duckdb-cli):")
    tell(f"  duckdb -readonly {shlex.quote(str(done.path))} -c \"FROM search_text('...', 5)\"")


def _seen_by(caller: Caller | None, *, public: bool, everything: bool) -> Caller | None:
    """Return the caller on whose behalf to export; None for all documents."""
    if sum((caller is not None, public, everything)) != 1:
        raise SettingsError(
            "say on whose behalf to export: --user, --org or both; or --public alone, or --everything alone"
        )
    return None if everything else caller or Caller()


def _export_file(
    snapshot: Snapshot,
    filters: Filters,
    folder: Path,
    form: Format,
    judged_by: Settings | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write chunks with their vectors, or documents, for another store; and what users of a service judged."""
    from parquetry.serving.cli.export_feedback import export_feedback, refuse_existing
    from parquetry.storage.exchange.exporting import export_file

    if judged_by is not None and not overwrite:
        refuse_existing(folder)
    done = export_file(snapshot, filters, folder, form, overwrite=overwrite)
    judged = None if judged_by is None else export_feedback(judged_by, folder)
    unit = "documents" if form == "beir" else "chunks"
    if as_json:
        told = {"file": str(done.path), "format": form, "version": done.version, "documents": done.documents}
        if judged is not None:
            told |= {"queries": judged.queries, "judgements": judged.judgements}
        print_json({**told, unit: done.rows, "without_vector": done.without_vector, "embedder": done.embedder})
        return
    held = counted(done.documents, "document")
    if unit == "chunks":
        held = f"{held}, {counted(done.rows, 'chunk')} with vectors of {done.embedder}"
    tell(f"Wrote {done.path}: {held}; version {done.version}.")
    if done.without_vector:
        tell(f"{counted(done.without_vector, 'chunk')} without a vector left out.")
    if judged is not None:
        about = counted(judged.queries, "query", "queries")
        tell(f"Wrote {counted(judged.judgements, 'judgement')} of users on the documents of {about}.")
