"""The command `import`: chunks with their vectors from a dump of another store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquetry.errors import SettingsError
from parquetry.importing.chunk import FieldNames, Rejection
from parquetry.model import Access, Visibility
from parquetry.planning.report import published_line
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.option_groups import with_option_groups
from parquetry.serving.cli.options import (
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    settings_for,
)
from parquetry.serving.cli.output import print_json
from parquetry.serving.cli.progress import progress
from parquetry.serving.cli.run_commands import AllowRemovalsOption, StrictOption
from parquetry.settings.home import expanded
from parquetry.settings.places import anchored
from parquetry.settings.sections import CorpusSettings, Settings

if TYPE_CHECKING:
    from parquetry.planning.report import RunReport


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """Options that say what the dump is, and what becomes of it."""

    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="Embedder that made the vectors, as in the settings.")
    ]
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Source that the documents belong to from now on.")
    ] = "imported"
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="Compare a sample of vectors with the model; default: if it runs on this machine.",
        ),
    ] = None
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove documents of the source that the dump does not hold.")
    ] = False


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """Options that name the fields of a dump."""

    id_field: Annotated[
        str | None,
        typer.Option("--id-field", metavar="NAME", help="Field with the id of a chunk; default: the usual names."),
    ] = None
    text_field: Annotated[
        str | None, typer.Option("--text-field", metavar="NAME", help="Field with its text; default: the usual names.")
    ] = None
    vector_field: Annotated[
        str | None,
        typer.Option("--vector-field", metavar="NAME", help="Field with its vector; default: the usual names."),
    ] = None
    document_field: Annotated[
        str | None,
        typer.Option("--document-field", metavar="NAME", help="Field that names its document, as metadata.file_path."),
    ] = None
    per_row: Annotated[bool, typer.Option("--per-row", help="Make each row a document, named by its id.")] = False

    def names(self) -> FieldNames:
        """Return the names of the fields.

        Raises:
            SettingsError: two options exclude each other.
        """
        if self.per_row and self.document_field is not None:
            raise SettingsError("--per-row makes each row a document; leave out --document-field")
        document = "" if self.per_row else self.document_field or None
        return FieldNames(self.id_field or None, self.text_field or None, self.vector_field or None, document)


@dataclass(frozen=True, slots=True)
class AudienceOptions:
    """Options that say who may see the documents."""

    visibility: Annotated[
        Visibility | None,
        typer.Option("--visibility", help="Who may see the documents; default: what the dump says, else all."),
    ] = None
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="User that owns the documents.")] = None
    org: Annotated[str | None, typer.Option("--org", metavar="NAME", help="Organization that owns the documents.")] = (
        None
    )
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Label; may be repeated.")] = None

    def access(self) -> Access | None:
        """Return the access of all documents; None if no option is given.

        Raises:
            SettingsError: the visibility lacks its owner.
        """
        if not any((self.visibility, self.user, self.org, self.tag)):
            return None
        visibility = self.visibility or ("individual" if self.user else "organization" if self.org else "public")
        if visibility == "individual" and not self.user:
            raise SettingsError("--visibility individual needs --user")
        if visibility == "organization" and not self.org:
            raise SettingsError("--visibility organization needs --org")
        return Access(visibility, self.org, self.user, tuple(self.tag or ()))


@with_option_groups
def import_(
    dump: DumpOptions,
    fields: FieldOptions,
    audience: AudienceOptions,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Dump in Parquet or JSON lines, or a folder of such files.")
    ],
    allow_removals: AllowRemovalsOption = False,
    strict: StrictOption = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import chunks with their vectors; nothing is embedded again.

    A row that cannot be imported is one line on stderr. What was imported before and is unchanged stays as it is.
    """
    from parquetry.flows.pipelines.importing import ImportRequest, run_import
    from parquetry.storage.without_pandas import use_without_pandas

    use_without_pandas()
    settings = settings_for(config, corpus)
    request = ImportRequest(
        settings,
        tuple(expanded(str(file)) for file in files),
        anchored(Settings(corpus=CorpusSettings(embedder=dump.embedder)), Path.cwd()).corpus.embedder,
        dump.source,
        namespace or settings.corpus.namespace,
        audience.access(),
        fields.names(),
        dump.replace,
        allow_removals,
        dump.check,
    )
    rejected = 0

    def told(rejection: Rejection) -> None:
        nonlocal rejected
        rejected += 1
        tell(f"  not imported: {rejection}", err=True)

    with progress(silent=as_json) as observer:
        report = run_import(request, observer, told)
    if as_json:
        print_json({**report.as_json(), "rejected": rejected})
    else:
        _print(report, settings.corpus.root, rejected)
    if report.error is not None:
        raise typer.Exit(report.error.exit_code)
    if strict and rejected:
        raise typer.Exit(1)


def _print(report: RunReport, root: str, rejected: int) -> None:
    counts: dict[str, Any] = report.documents.as_dict()
    parts = [f"{value} {name}" for name, value in counts.items() if value and name != "scanned"]
    seen = f"{counted(report.documents.scanned, 'document')} in {report.seconds:.1f} s"
    tell(f"{seen}: {', '.join(parts) or 'nothing to do'}.")
    if report.work.chunks_written:
        tell(f"{counted(report.work.chunks_written, 'chunk')} with their vectors, none embedded.")
    if rejected:
        tell(f"{counted(rejected, 'row or document', 'rows or documents')} not imported, with the reasons above.")
    for warning in report.warnings:
        tell(f"Note: {warning}.")
    tell(published_line(root, report))
    for refusal in report.refused:
        tell(f"Refused: {refusal}.")
