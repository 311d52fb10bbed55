"""The command `reindex`: rebuild documents, or migrate a corpus to another embedder or other chunk settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquetry.errors import SettingsError
from parquetry.planning.migration import Migration, Value, embedder_key
from parquetry.planning.migration import as_json as _migration_json
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.option_groups import with_option_groups
from parquetry.serving.cli.options import (
    BudgetOption,
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    VerboseOption,
    settings_for,
)
from parquetry.serving.cli.output import print_json
from parquetry.serving.cli.progress import progress
from parquetry.serving.cli.run_commands import DirectOption, StrictOption, run_request
from parquetry.serving.cli.run_output import priced, print_failures
from parquetry.settings.places import anchored
from parquetry.settings.sections import CorpusSettings, Settings

if TYPE_CHECKING:
    from parquetry.flows.pipelines.migration_plan import MigrationPreview, MigrationRequest
    from parquetry.planning.report import RunReport

_WHAT_NEXT = (
    "Searches are as before. Compare: parquetry eval --candidate. Switch: parquetry reindex --switch. "
    "Give up: parquetry reindex --abandon."
)


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """Options of a migration, which is built beside the corpus and then switched to."""

    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="NAME", help="Build vectors of this embedder beside those in use."),
    ] = None
    chunks_only: Annotated[
        bool, typer.Option("--chunks-only", help="Divide the stored texts anew, beside the chunks in use.")
    ] = False
    chunk_size: Annotated[
        int | None,
        typer.Option("--chunk-size", metavar="N", min=16, max=100_000, help="Largest chunk, as `chunking.size`."),
    ] = None
    chunk_overlap: Annotated[
        int | None,
        typer.Option("--chunk-overlap", metavar="N", min=0, max=99_999, help="Overlap, as `chunking.overlap`."),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the build would do and cost; write and spend nothing.")
    ] = False
    switch: Annotated[bool, typer.Option("--switch", help="Publish what was built, all at once.")] = False
    abandon: Annotated[bool, typer.Option("--abandon", help="Give up what is being built.")] = False

    @property
    def is_asked_for(self) -> bool:
        """True if any of the options is given."""
        return self != MigrationOptions()


@with_option_groups
def reindex(
    migration: MigrationOptions,
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="DOCUMENT", help="Ids, uris, or globs over names and paths.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every document.")] = False,
    embeddings_only: Annotated[
        bool, typer.Option("--embeddings-only", help="Compute new vectors from the stored text.")
    ] = False,
    direct: DirectOption = False,
    strict: StrictOption = False,
    budget: BudgetOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Rebuild documents, or migrate to another embedder.

    Documents are rebuilt whatever their hashes say. With --embedder, --chunk-size or --chunk-overlap, the vectors or
    chunks are built beside those in use, from what is stored: nothing changes for searches until --switch. A build
    that was interrupted goes on where it was.
    """
    settings = settings_for(config, corpus, refresh=budget)
    if migration.is_asked_for:
        if documents or everything:
            raise SettingsError("a migration is of all documents; leave out their names and --all")
        values = _values(migration, namespace)
        if migration.dry_run:
            _preview(settings, values, as_json=as_json)
        elif migration.abandon:
            _abandon(settings, as_json=as_json)
        else:
            _migrate(settings, values, migration, direct=direct, as_json=as_json, strict=strict, verbose=verbose)
        return
    from parquetry.flows.pipelines.reindex import reindex_request

    if not documents and not everything:
        raise SettingsError("name the documents to reindex, or give --all for every document")
    if documents and everything:
        raise SettingsError("--all is every document; give it alone, or name documents without it")
    request = reindex_request(settings, tuple(documents or ()), namespace, embeddings_only=embeddings_only)
    run_request(request, direct=direct, as_json=as_json, strict=strict, verbose=verbose)


def _values(options: MigrationOptions, namespace: str | None) -> tuple[tuple[str, Value], ...]:
    """Return the settings that a migration changes; empty for one that was begun."""
    if options.switch and options.abandon:
        raise SettingsError("--switch publishes what was built, --abandon gives it up; give one of them")
    sizes = [("chunking.size", options.chunk_size), ("chunking.overlap", options.chunk_overlap)]
    values: list[tuple[str, Value]] = [(key, value) for key, value in sizes if value is not None]
    if options.chunks_only and not values:
        raise SettingsError("--chunks-only needs --chunk-size or --chunk-overlap")
    if values and namespace is not None:
        raise SettingsError("[chunking] holds for all namespaces; leave out --namespace")
    if options.embedder is not None:
        # A folder is relative to where the command runs, and the record holds for every other place, too.
        named = anchored(Settings(corpus=CorpusSettings(embedder=options.embedder)), Path.cwd())
        values.insert(0, (embedder_key(namespace), named.corpus.embedder))
    if values and (options.switch or options.abandon):
        raise SettingsError("--switch and --abandon are about the migration that is being built; name no other")
    if namespace is not None and options.embedder is None:
        raise SettingsError("--namespace needs --embedder: the migration that is being built has its namespaces")
    return tuple(values)


def _preview(settings: Settings, values: tuple[tuple[str, Value], ...], *, as_json: bool) -> None:
    from parquetry.flows.pipelines.migration_plan import MigrationRequest, preview_migration

    found = preview_migration(MigrationRequest(settings, values))
    if as_json:
        print_json(_preview_json(found))
        return
    progress, amount = found.progress, found.amount
    tell(f"Migration to {found.migration}: {counted(progress.documents, 'document')}, {progress.built} built.")
    if not progress.left:
        tell("Nothing is left to build." if progress.built else "Nothing would change.")
        return
    for embedder, price in found.prices.items():
        if price.usd_per_million_tokens:
            tell(f"Price of {embedder}: {price}.")
    tell(
        f"To build: {counted(progress.left, 'document')}, about {counted(amount.chunks, 'chunk')}; about "
        f"{counted(amount.texts, 'text')} to embed, {counted(amount.tokens, 'token')}, {priced(found.cost_usd)}."
    )


def _preview_json(found: MigrationPreview) -> dict[str, Any]:
    progress, amount = found.progress, found.amount
    return {
        "migration": _migration_json(found.migration),
        "documents": progress.documents,
        "built": progress.built,
        "left": progress.left,
        "estimate": {
            "chunks": amount.chunks,
            "texts": amount.texts,
            "tokens": amount.tokens,
            "cost_usd": found.cost_usd,
        },
        "prices": [price.as_json(embedder) for embedder, price in found.prices.items()],
    }


def _abandon(settings: Settings, *, as_json: bool) -> None:
    from parquetry.flows.pipelines.migration_plan import abandon_migration

    migration = abandon_migration(settings)
    if as_json:
        print_json({"migration": _migration_json(migration)})
        return
    tell(f"Abandoned: {migration}. What was built goes with later compactions; until then it is found and used again.")


def _migrate(
    settings: Settings,
    values: tuple[tuple[str, Value], ...],
    options: MigrationOptions,
    *,
    direct: bool,
    as_json: bool,
    strict: bool,
    verbose: bool,
) -> None:
    from parquetry.flows.pipelines.migration_plan import MigrationRequest
    from parquetry.storage.without_pandas import use_without_pandas

    use_without_pandas()
    request = MigrationRequest(settings, values, "switch" if options.switch else "build")
    report, migration = _run(request, direct=direct, silent=as_json, verbose=verbose)
    if as_json:
        print_json({**report.as_json(), "migration": _migration_json(migration)})
    else:
        _print(report, request, migration)
    if report.error is not None:
        raise typer.Exit(report.error.exit_code)
    if strict and report.failures:
        raise typer.Exit(1)


def _run(request: MigrationRequest, *, direct: bool, silent: bool, verbose: bool) -> tuple[RunReport, Migration]:
    from parquetry.storage.files.layout import layout_of
    from parquetry.storage.lake.migrations import read_migrations

    with progress(silent=silent) as observer:
        if direct:
            from parquetry.flows.pipelines.migration import run_migration
            from parquetry.tasks.engine.base import DirectEngine

            report = run_migration(request, DirectEngine(), observer)
        else:
            from parquetry.flows.local import run_migration_on_prefect

            report = run_migration_on_prefect(request, observer, verbose=verbose)
    known = read_migrations(layout_of(request.settings.corpus.root))
    return report, known.active or known.switched[-1]


def _print(report: RunReport, request: MigrationRequest, migration: Migration) -> None:
    counts, work = report.documents, report.work
    before = f", {counts.unchanged} were there" if counts.unchanged else ""
    tell(f"Built {counted(counts.changed, 'document')} in {report.seconds:.1f} s{before}.")
    if work.chunks_written:
        tell(
            f"{counted(work.chunks_written, 'chunk')}: {work.chunks_embedded} embedded "
            f"({counted(work.tokens, 'token')}, {priced(work.cost_usd)}), {work.chunks_reused} reused."
        )
    print_failures(report)
    for line in (*(f"Failed: {each}" for each in report.outages), *(f"Refused: {each}" for each in report.refused)):
        tell(f"{line}.")
    root = request.settings.corpus.root
    if request.action == "build":
        if not (report.failures or report.refused):
            tell(f"Corpus {root}: everything is built for {migration}.")
        tell(_WHAT_NEXT)
        return
    index = "" if report.index_error is None else f", but its search index is not written: {report.index_error}"
    tell(f"Corpus {root}: switched to {migration} at version {report.version}{index}.")
    tell("Set that in the settings; until then searches and runs follow the corpus, and say so.")
    tell("What was before goes with `parquetry compact` and `parquetry vacuum`, once no kept version needs it.")
