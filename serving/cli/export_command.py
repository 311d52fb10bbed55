"""The command `export`: write a part of the corpus to a DuckDB file."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import Annotated

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
from parquetry.storage.search.filters import Caller


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write corpus.duckdb to.")],
    user: UserOption = None,
    org: OrgOption = None,
    public: Annotated[bool, typer.Option("--public", help="Only what is public.")] = False,
    namespace: NamespacesOption = None,
    where: WhereOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export what a caller may see to a separate DuckDB file.

    The file is self-contained.
    """
    from dataclasses import replace

    from parquetry.storage.search.export import export_corpus

    caller = caller_of(user, org)
    if (caller is None) != public:
        raise SettingsError("say on whose behalf to export: --user, --org or both; or --public alone")
    filters = replace(FilterOptions(namespace=namespace, where=where).filters(), caller=caller or Caller())
    settings = settings_for(config, corpus)
    snapshot = Lake(settings.corpus.root).snapshot(version)
    if filters.namespaces:
        with closing(connect_snapshot(snapshot)) as connection:
            check_filters(connection, settings, filters)
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
