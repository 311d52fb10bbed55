"""`parquetry doctor`: check a corpus and repair it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquetry.errors import ParquetryError, SettingsError
from parquetry.planning.rows import new_stamp
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.store import UploadStore
from parquetry.storage.lake.lake import Lake

if TYPE_CHECKING:
    from parquetry.storage.maintenance.doctor import Checkup


@dataclass
class Repair:
    """Log of a repair, printed as it proceeds."""

    silent: bool
    steps: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """data that only sources or backups can restore"""

    def tell(self, step: str) -> None:
        self.steps.append(step)
        if not self.silent:
            tell(f"repair: {step}")

    def miss(self, what: str) -> None:
        self.lost.append(what)
        if not self.silent:
            tell(f"lost: {what}")


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Read the ends of files and a sample of texts instead of every byte.")
    ] = False,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Repair from the index, unreferenced files and sources; each step is printed first."
        ),
    ] = False,
    _: Annotated[
        bool, typer.Option("--all", hidden=True, help="Read every byte; the default without --quick.")
    ] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that the corpus is complete and consistent.

    Exit code 1 if not.
    """
    from parquetry.storage.maintenance.doctor import examine

    if quick and fix:
        raise SettingsError("--fix looks at every byte; give it without --quick")
    settings = settings_for(config, corpus)
    repair = Repair(silent=as_json)
    if fix:
        mend(settings, repair)
    lake = Lake(settings.corpus.root, single_writer=settings.corpus.single_writer)
    checkup = examine(lake, settings.search, quick=quick, uploads=UploadStore(settings))
    if as_json:
        told: dict[str, Any] = {**asdict(checkup), "healthy": checkup.healthy}
        print_json({**told, "steps": repair.steps, "lost": repair.lost} if fix else told)
    else:
        for finding in checkup.findings:
            tell(f"{finding.severity} {finding.check}: {finding.detail}")
        tell(
            f"Corpus {checkup.root}, version {checkup.version}, {_state(checkup, fixed=fix)}: "
            f"{counted(checkup.documents, 'document')} and {counted(checkup.chunks, 'chunk')}, spans of "
            f"{counted(checkup.spans_checked, 'document')} compared."
        )
    if not checkup.healthy:
        raise typer.Exit(1)


def _state(checkup: Checkup, *, fixed: bool) -> str:
    if checkup.healthy:
        return "is healthy"
    if {finding.check for finding in checkup.findings if finding.severity == "problem"} == {"secret"}:
        return "is whole, and holds secrets; `parquetry doctor --fix` takes them out"
    if fixed:
        return "is still damaged; a backup, or `parquetry reindex` once the sources are there, gives back the rest"
    return "is damaged; `parquetry doctor --fix` repairs what index, files and sources still hold"


def mend(settings: Settings, told: Repair) -> None:
    """Repair a corpus as far as possible.

    Args:
        settings: settings of the corpus.
        told: receives each step before it is taken.

    Raises:
        ParquetryError: the corpus cannot be repaired.
    """
    from parquetry.storage.maintenance.repair import documents_lacking, repair
    from parquetry.storage.maintenance.upload_checks import upload_steps

    for step in repair(settings.corpus.root, settings.search, new_stamp(), single_writer=settings.corpus.single_writer):
        told.tell(step.what)
        step.do()
        if step.lost:
            told.miss(step.lost)
    for mending in upload_steps(UploadStore(settings)):
        if mending.lost:
            told.miss(mending.lost)
        else:
            told.tell(mending.what)
            mending.do()
    for (namespace, source), documents in documents_lacking(Lake(settings.corpus.root)).items():
        count = counted(len(documents), "document")
        told.tell(f"extract {count} of {namespace}/{source} again, of which text or chunks are missing")
        try:
            _extract(settings, documents)
        except ParquetryError as error:
            told.miss(f"{count} of {namespace}/{source}, which only the source can give back: {error}")
    for (namespace, source), documents in documents_lacking(Lake(settings.corpus.root)).items():
        left = ", ".join(documents[:3]) + (", ..." if len(documents) > 3 else "")
        told.miss(f"text or chunks of {counted(len(documents), 'document')} of {namespace}/{source} ({left})")


def _extract(settings: Settings, documents: list[str]) -> None:
    from parquetry.flows.pipelines.documents import run_refresh
    from parquetry.flows.pipelines.observer import Observer
    from parquetry.flows.pipelines.reindex import reindex_request
    from parquetry.tasks.engine.base import DirectEngine

    request = reindex_request(settings, tuple(documents), None, embeddings_only=False)
    report = run_refresh(request, DirectEngine(), Observer())
    if report.outages or report.refused:
        raise ParquetryError("; ".join(map(str, (*report.outages, *report.refused))))
