"""The commands `compact` and `vacuum`, which give back space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parquetry.errors import IndexNotWritten
from parquetry.planning.rows import new_stamp
from parquetry.plural import counted, size_of
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json
from parquetry.settings.sections import Settings
from parquetry.storage.lake.lake import Lake

if TYPE_CHECKING:
    from parquetry.storage.maintenance.compaction import Compaction


def compact(config: ConfigOption = None, corpus: CorpusOption = None, as_json: JsonOption = False) -> None:
    """Write small files together; drop what no kept version needs.

    `[retention]` says how long versions are kept; those with a tag are kept, too. Searches and runs go on.
    The files before stay until `vacuum` deletes them.
    """
    from parquetry.storage.maintenance.compaction import compact

    settings = settings_for(config, corpus)
    done = compact(_open(settings), settings.retention, settings.search, new_stamp())
    if as_json:
        print_json(
            {
                "run_id": done.run_id,
                "version_before": done.version_before,
                "version": done.version,
                "oldest_version": done.horizon,
                "files_before": done.files_before,
                "files_after": done.files_after,
                "rows_dropped": done.rows_dropped,
                "index_error": done.index_error,
            }
        )
    else:
        _print(done, settings.corpus.root)
    if done.index_error is not None:
        raise typer.Exit(IndexNotWritten.exit_code)


def vacuum(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files, and delete nothing.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the files that no kept version is read from.

    `[retention]` says how long versions are kept; those with a tag are kept, too. Files that were replaced
    less than a day ago stay, for searches and runs that go on.
    """
    from parquetry.storage.maintenance.vacuum import unneeded_files, vacuum

    settings = settings_for(config, corpus)
    if dry_run:
        done = unneeded_files(Lake(settings.corpus.root), settings.retention, new_stamp())
    else:
        done = vacuum(_open(settings), settings.retention, new_stamp())
    if as_json:
        print_json(
            {
                "run_id": None if dry_run else done.run_id,
                "version": done.version,
                "oldest_version": done.horizon,
                "bytes": done.bytes,
                "files": [{"file": f"{file.table}/{file.name}", "bytes": file.size} for file in done.files],
            }
        )
        return
    for file in done.files if dry_run else ():
        tell(f"{file.table}/{file.name}  {size_of(file.size)}")
    verb = "would be deleted" if dry_run else "deleted"
    tell(
        f"Corpus {settings.corpus.root}: {counted(len(done.files), 'file')} of {size_of(done.bytes)} {verb}; versions "
        f"from {done.horizon} on and those with a tag are kept."
    )


def _open(settings: Settings) -> Lake:
    """Open an existing corpus for writing."""
    Lake(settings.corpus.root)
    return Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)


def _print(done: Compaction, root: str) -> None:
    for table, before in done.files_before.items():
        dropped = done.rows_dropped.get(table, 0)
        without = f", without {counted(dropped, 'row')} that no kept version needs" if dropped else ""
        after = done.files_after[table]
        tell(f"{table}: {counted(before, 'file')} written as {after}{without}.")
    if done.is_idle:
        tell(f"Corpus {root}: nothing to compact.")
        return
    tell(f"Corpus {root}: version {done.version}; versions from {done.horizon} on and those with a tag are kept.")
    tell("The files before stay until `parquetry vacuum` deletes them, a day from now at the earliest.")
    if done.index_error is not None:
        tell(f"The search index is not written: {done.index_error}")
