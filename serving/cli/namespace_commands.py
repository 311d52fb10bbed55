"""The commands `namespaces` and `namespaces delete`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from parquetry.errors import RefusedError, SettingsError
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.arguments import Command, check_arguments
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import confirmed, print_json, print_table
from parquetry.serving.cli.suggestions import Commands
from parquetry.serving.search.known_names import check_known
from parquetry.storage.lake.lake import Lake

app = typer.Typer(cls=Commands, help="List the parts of the corpus, or delete one.")


@app.callback(invoke_without_command=True)
def namespaces(
    context: typer.Context,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the parts of the corpus, or delete one."""
    check_arguments(context)
    if context.invoked_subcommand is not None:
        if config is not None or corpus is not None or as_json:
            command = f"namespaces {context.invoked_subcommand}"
            raise SettingsError(f"options go to the end: parquetry {command} NAME --corpus ROOT")
        return
    from parquetry.storage.search.namespaces import namespaces_of

    settings = settings_for(config, corpus)
    snapshot = Lake(settings.corpus.root).snapshot()
    found = namespaces_of(snapshot)
    if as_json:
        listed = [{**asdict(each), "published_at": each.published_at.isoformat()} for each in found]
        print_json({"version": snapshot.version, "namespaces": listed})
        return
    if not found:
        tell("No documents.")
        return
    columns = ("namespace", "documents", "indexed", "chunks", "entries", "public", "organization", "individual")
    print_table(
        (*columns, "embedder", "published"),
        [
            (
                *(getattr(each, name) for name in columns),
                ", ".join(each.embedders),
                f"{each.published_at:%Y-%m-%d %H:%M:%S} UTC",
            )
            for each in found
        ],
    )


@app.command(cls=Command)
def delete(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The namespace to delete.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove all documents of a namespace from the corpus.

    Earlier versions keep them.
    """
    from parquetry.planning.rows import new_stamp
    from parquetry.sources.uploads.store import UploadStore
    from parquetry.storage.lake.rewrite import remove_namespace
    from parquetry.storage.search.namespaces import namespaces_of

    settings = settings_for(config, corpus)
    root = settings.corpus.root
    known = {each.namespace: each for each in namespaces_of(Lake(root).snapshot())}
    check_known("namespace", [name], known, settings)
    if not yes:
        _ask(name, _told(known[name].documents, known[name].entries))
    lake = Lake(root, create=True, single_writer=settings.corpus.single_writer)
    store = UploadStore(settings)
    # Uploads that are still there would come back with the next refresh.
    deleted = sum(store.delete(name, upload.path) for upload in list(store.each(name)))
    done = remove_namespace(lake, name, new_stamp())
    feeding = sorted(s.name for s in settings.source if (s.namespace or settings.corpus.namespace) == name)
    if as_json:
        removed = {"removed": len(done.documents), "entries": len(done.entries)}
        print_json({"run_id": done.run_id, "version": done.version, **removed, "sources": feeding})
        return
    told = _told(len(done.documents), len(done.entries))
    tell(f"Removed {told} of {name}. Corpus {root}: published version {done.version}.")
    if deleted:
        tell(f"Deleted the bytes of {counted(deleted, 'upload')}.")
    tell(f"To have them back: parquetry restore --version {done.version_before} --namespace {name}")
    if feeding:
        tell(f"The next refresh brings them again: {', '.join(feeding)} in the settings file feeds {name}.")


def _told(documents: int, entries: int) -> str:
    return counted(documents, "document") + (f" and {counted(entries, 'entry')}" if entries else "")


def _ask(name: str, what: str) -> None:
    if not sys.stdin.isatty():
        raise RefusedError(f"{what} of namespace {name!r} would be removed; to agree, give --yes")
    if not confirmed(f"Remove all {what} of namespace {name!r}?", err=True):
        raise RefusedError("nothing was removed")
