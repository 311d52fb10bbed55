"""The command `tag`: name versions, which are kept as long as they have a name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from parquetry.errors import SettingsError
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, VersionOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.storage.lake.lake import Lake


def tag(
    name: Annotated[str | None, typer.Argument(help="Name of the tag. Default: list all tags.")] = None,
    version: VersionOption = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the tag; the version stays as any other.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name a version, the newest without --version.

    A version with a tag is kept by `compact` and `vacuum`, and can be named by it wherever a command takes
    a version. Without NAME, list the tags.
    """
    from parquetry.storage.lake.retention import add_tag, delete_tag, read_retention

    settings = settings_for(config, corpus)
    lake = Lake(settings.corpus.root, single_writer=settings.corpus.single_writer)
    if name is None and (delete or version is not None):
        raise SettingsError("--delete and --version go with the name of a tag")
    if delete and version is not None:
        raise SettingsError("--delete takes the name of a tag, and no --version")
    now = datetime.now(UTC)
    if name is None:
        kept = read_retention(lake.layout)
    else:
        named = None if delete else lake.snapshot(version, needed=["documents"]).version
        lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
        kept = delete_tag(lake.layout, name, now) if named is None else add_tag(lake.layout, name, named, now)
    if as_json:
        told = [{"name": each.name, "version": each.version, "at": each.at.isoformat()} for each in kept.tags]
        print_json({"tags": told})
    elif name is None:
        print_table(
            ["tag", "version", "at (UTC)"],
            [(each.name, each.version, f"{each.at:%Y-%m-%d %H:%M:%S}") for each in kept.tags],
        )
    elif delete:
        tell(f"Corpus {settings.corpus.root}: deleted tag {name}.")
    else:
        tell(f"Corpus {settings.corpus.root}: tag {name} names version {named}.")
