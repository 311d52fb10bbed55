"""Commands that start a run. Flows are imported only when a run starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parquetry.errors import SettingsError
from parquetry.plural import counted
from parquetry.printing import tell
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
from parquetry.serving.cli.quick_imports import quick_imports
from parquetry.serving.cli.run_output import print_on_their_way, print_plan, print_report, print_space
from parquetry.settings.sections import DEFAULT_FILE

if TYPE_CHECKING:
    from parquetry.flows.pipelines.documents import Request
    from parquetry.planning.report import RunReport

_AT_MOST = ("chunks", "tokens", "cost_usd", "cost_usd_batch")
TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET", help="Names of sources, folders or files; default: all sources."),
]
DirectOption = Annotated[bool, typer.Option("--direct", help="Run in this process, without Prefect.")]
AllowRemovalsOption = Annotated[
    bool, typer.Option("--allow-removals", help="Allow the removal of any number of documents.")
]
RehashOption = Annotated[
    bool, typer.Option("--rehash", help="Read every document and compare its bytes with what is published.")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with code 1 if a document or a source failed.")]


def init(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path(DEFAULT_FILE),
    agents: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="Agent file (JSON) whose `knowledge` becomes sources; repeatable."),
    ] = None,
    organization: Annotated[
        str | None, typer.Option("--org", metavar="NAME", help="Organization that may see shared knowledge; else all.")
    ] = None,
) -> None:
    """Write a commented settings file.

    An existing file is checked and kept.
    """
    from parquetry.serving.cli.new_settings import write_settings

    if organization is not None and not (agents and organization.strip()):
        raise SettingsError("--org names the organization that may see what agents share; name their files with --from")
    sources = write_settings(file, agents or (), organization)
    for source in sources:
        owner = source.user_id or source.org_id
        tell(f"  {source.name}: {source.uri} ({source.visibility}{f' {owner}' if owner else ''})")
    next_step = "Check the sources" if sources else "Add your sources there"
    tell(f"Wrote {file}. {next_step}, then run: parquetry plan")


def plan(
    targets: TargetsArgument = None,
    allow_removals: AllowRemovalsOption = False,
    rehash: RehashOption = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show what a refresh would do and cost.

    Writes and spends nothing.
    """
    with quick_imports():
        from parquetry.flows.pipelines.documents import Request, plan_with_space
        from parquetry.planning.report import count_documents
        from parquetry.storage.files.layout import layout_of
        from parquetry.storage.lake.batches import BatchRecords
        from parquetry.storage.without_pandas import use_without_pandas

    use_without_pandas()
    settings = settings_for(config, corpus)
    request = Request(settings, tuple(targets or ()), namespace, allow_removals, rehash=rehash)
    planned, spaces = plan_with_space(request)
    if as_json:
        estimate = planned.estimate
        print_json(
            {
                "documents": count_documents(planned.sources).as_dict(),
                "estimate": {name: getattr(estimate, name) for name in _AT_MOST},
                "likely": {
                    **{name: getattr(estimate.likely, name) for name in estimate.likely.__slots__},
                    "cost_usd_batch": estimate.likely_usd_batch,
                },
                "batched": sorted(estimate.batched),
                "expected_usd": estimate.expected_usd,
                "unbounded": estimate.unbounded,
                "sources": [source.as_json() for source in estimate.sources],
                "prices": [price.as_json(embedder) for embedder, price in estimate.prices.items()],
                "refused": list(planned.refused),
                "kept": [kept.as_json() for kept in planned.kept],
                "warnings": [*planned.empty, *planned.left_out, *planned.warnings],
                "space": [space.as_json() for space in spaces],
            }
        )
    else:
        print_plan(planned, verbose=verbose)
        print_on_their_way(BatchRecords(layout_of(settings.corpus.root)).open())
        print_space(spaces)
    if planned.refused:
        raise typer.Exit(3)


def refresh(
    targets: TargetsArgument = None,
    direct: DirectOption = False,
    allow_removals: AllowRemovalsOption = False,
    rehash: RehashOption = False,
    strict: StrictOption = False,
    budget: BudgetOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Bring the corpus up to date with its sources.

    With targets, only these: names of sources, folders or files.
    """
    with quick_imports():
        from parquetry.flows.pipelines.documents import Request

    settings = settings_for(config, corpus, refresh=budget)
    request = Request(settings, tuple(targets or ()), namespace, allow_removals, rehash=rehash)
    run_request(request, direct=direct, as_json=as_json, strict=strict, verbose=verbose)


def run_request(request: Request, *, direct: bool, as_json: bool, strict: bool, verbose: bool) -> None:
    """Run a refresh and print its report."""
    from parquetry.storage.without_pandas import use_without_pandas

    use_without_pandas()
    with progress(silent=as_json) as observer:
        if direct:
            from parquetry.flows.pipelines.documents import run_refresh
            from parquetry.tasks.engine.base import DirectEngine

            report = run_refresh(request, DirectEngine(), observer)
        else:
            from parquetry.flows.local import run_on_prefect

            report = run_on_prefect(request, observer, verbose=verbose)
    _finish(report, request, as_json=as_json, strict=strict, verbose=verbose)


def _finish(report: RunReport, request: Request, *, as_json: bool, strict: bool, verbose: bool) -> None:
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report, request.settings.corpus.root)
        for warning in report.warnings if verbose else ():
            tell(f"  note {warning}")
        if report.warnings and not verbose:
            notes = counted(len(report.warnings), "note")
            tell(f"  {notes} on documents; -v shows them, and `parquetry documents --notes` later")
    if report.error is not None:
        raise typer.Exit(report.error.exit_code)
    if strict and any(failure.status == "failed" for failure in report.failures):
        raise typer.Exit(1)
