"""The command `status`: the state of a corpus and its sources on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from typing import Any

from parquetry.errors import SettingsError
from parquetry.planning.compaction import MANY_FILES
from parquetry.plural import counted, size_of
from parquetry.printing import tell, tell_wrapped
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json, print_table, terminal_width
from parquetry.serving.search.run_rows import outcome_of, run_json
from parquetry.settings.schedule import next_run
from parquetry.settings.sections import Settings
from parquetry.storage.lake.batches import OpenBatch
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.migration_state import MigrationsState, migrations_state
from parquetry.storage.maintenance.overview import Overview, SourceState, overview_of

_FREE = ("wordllama", "onnx")
"""kinds of embedders that run locally at no cost"""
_SHOWN_REASONS = 5


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Status of a source in the settings, or of a former one that still has documents in the corpus."""

    name: str
    namespace: str
    uri: str | None
    """None if the source is no longer in the settings"""
    content: str
    schedule: str | None
    next_run: datetime | None
    """time of the next scheduled run, UTC"""
    last_run: dict[str, Any] | None
    """row of the table `runs`"""
    documents: int
    indexed: int
    failed: int
    skipped: int


def status(config: ConfigOption = None, corpus: CorpusOption = None, as_json: JsonOption = False) -> None:
    """Show the state of the corpus and its sources on one screen.

    Exit code 2 if there is no corpus yet.
    """
    settings = settings_for(config, corpus)
    root = settings.corpus.root
    overview = overview_of(Lake(root), settings.search) if Lake.exists(root) else None
    migrations = migrations_state(settings) if overview else MigrationsState(None, None)
    sources = _sources(settings, overview, datetime.now(UTC))
    if as_json:
        told = _as_json(settings, overview, sources)
        active = migrations.active
        print_json({**told, "migration": active and active.as_json(), "settings_outdated": migrations.outdated})
    else:
        _print(settings, overview, sources, migrations)
    if overview is None:
        raise SettingsError(f"no corpus at {root} yet; `parquetry refresh` makes one, --corpus names another")


def _sources(settings: Settings, overview: Overview | None, now: datetime) -> list[SourceStatus]:
    """Return the sources in the order of the settings, then those found only in the corpus."""
    known = {(each.namespace, each.source): each for each in overview.sources} if overview else {}
    found = []
    for source in settings.source:
        namespace = source.namespace or settings.corpus.namespace
        state = known.pop((namespace, source.name), None)
        found.append(
            SourceStatus(
                name=source.name,
                namespace=namespace,
                uri=source.uri,
                content=source.content,
                schedule=source.schedule,
                next_run=_next(source.schedule, now),
                last_run=_last_run(overview, namespace, source.name, state),
                **_counts(state),
            )
        )
    for (namespace, name), state in known.items():
        last = _last_run(overview, namespace, name, state)
        found.append(SourceStatus(name, namespace, None, "documents", None, None, last, **_counts(state)))
    return found


def _next(schedule: str | None, now: datetime) -> datetime | None:
    try:
        return None if schedule is None else next_run(schedule, now)
    except ValueError:
        # The schedule names a year that is past.
        return None


def _counts(state: SourceState | None) -> dict[str, int]:
    names = ("documents", "indexed", "failed", "skipped")
    return {name: 0 if state is None else getattr(state, name) for name in names}


def _last_run(
    overview: Overview | None, namespace: str, source: str, state: SourceState | None
) -> dict[str, Any] | None:
    """Return the newest run over a source; for older runs without sources, the last one that changed it."""
    for run in overview.runs if overview else ():
        named = run["sources"]
        if named is not None and source in named and namespace in (run["namespaces"] or ()):
            return run
        if named is None and state is not None and run["run_id"] == state.run_id:
            return run
    return None


def _cost(settings: Settings, overview: Overview) -> dict[str, Any]:
    """Return the total cost of all runs, and the number of runs with unpriced tokens."""
    paid = any(embedder.partition(":")[0] not in _FREE for embedder in settings.embedders)
    unpriced = [
        run
        for run in overview.runs
        if run["tokens"] and not run["cost_usd"] and (paid or run["kind"] == "sessions") and run["status"] != "failed"
    ]
    return {
        "usd": round(sum(run["cost_usd"] or 0 for run in overview.runs), 6),
        "tokens": sum(run["tokens"] or 0 for run in overview.runs),
        "runs": len(overview.runs),
        "unpriced_runs": len(unpriced),
    }


def _as_json(settings: Settings, overview: Overview | None, sources: Sequence[SourceStatus]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "corpus": settings.corpus.root,
        "program": installed_version("parquetry"),
        "version": None,
        "sources": [
            {
                **asdict(each),
                "next_run": each.next_run.isoformat() if each.next_run else None,
                "last_run": run_json(each.last_run) if each.last_run else None,
            }
            for each in sources
        ],
    }
    if overview is None:
        return told
    index = overview.index
    return {
        **told,
        "version": overview.version,
        "published_at": overview.published_at.isoformat(),
        "namespaces": sorted({state.namespace for state in overview.sources}),
        "entries": overview.entries,
        "failures": overview.failures,
        "chunks": {"visible": overview.chunks_visible, "stored": overview.chunks_stored},
        "index": {**asdict(index), "behind": overview.version - index.version} if index else None,
        "size": {
            "bytes": _total(overview),
            "tables": [asdict(each) for each in overview.tables],
            "index_bytes": index.bytes if index else 0,
            "answers_bytes": overview.answers_bytes,
        },
        "cost": _cost(settings, overview),
        "batches": [each.as_json() for each in overview.batches],
    }


def _total(overview: Overview) -> int:
    tables = sum(each.bytes + each.log_bytes for each in overview.tables)
    return tables + overview.answers_bytes + (overview.index.bytes if overview.index else 0)


def _print(
    settings: Settings, overview: Overview | None, sources: Sequence[SourceStatus], migrations: MigrationsState
) -> None:
    if overview is not None:
        _print_corpus(settings, overview)
        _print_migrations(migrations)
    if sources:
        _print_sources(sources, several=len({each.namespace for each in sources}) > 1)
    else:
        tell("No sources: name folders to refresh, or add a [[source]] table to the settings.")
    if overview is None:
        return
    if overview.failures:
        shown = list(overview.failures.items())[:_SHOWN_REASONS]
        tell()
        tell("Not indexed (parquetry documents --status failed, --status skipped):")
        for reason, count in shown:
            tell(f"  {count} x {reason}")
        if len(shown) < len(overview.failures):
            tell(f"  and {counted(len(overview.failures) - len(shown), 'other reason')}")
    if overview.batches:
        tell()
        _print_batches(overview.batches)
    tell()
    _print_size(overview, migrations.active.chunks if migrations.active else 0)
    _print_cost(_cost(settings, overview))


def _print_corpus(settings: Settings, overview: Overview) -> None:
    documents = sum(each.documents for each in overview.sources)
    namespaces = len({each.namespace for each in overview.sources})
    parts = [counted(documents, "document"), counted(overview.chunks_visible, "chunk")]
    if overview.entries:
        parts.append(counted(overview.entries, "entry"))
    where = f" in {counted(namespaces, 'namespace')}" if namespaces > 1 else ""
    _echo(f"Corpus {settings.corpus.root}: version {overview.version}, published {_time(overview.published_at)}.")
    tell(f"{', '.join(parts)}{where}. Parquetry {installed_version('parquetry')}.")
    tell()


def _print_sources(sources: Sequence[SourceStatus], *, several: bool) -> None:
    columns = ["source", "documents", "failed", "last run (UTC)", "outcome", "next run (UTC)"]
    rows = []
    for each in sources:
        run = each.last_run
        name = f"{each.namespace}: {each.name}" if several else each.name
        rows.append(
            (
                name,
                each.documents if each.content == "documents" else "sessions",
                each.failed,
                _minute(run["started_at"]) if run else "never",
                outcome_of(run) if run else "",
                _minute(each.next_run) if each.next_run else "-" if each.uri else "not in settings",
            )
        )
    print_table(columns, rows)


def _print_batches(batches: Sequence[OpenBatch]) -> None:
    tell("On the way at the batch API of a service (parquetry batches):")
    for batch in batches:
        tell(f"  {batch}")


def _print_migrations(migrations: MigrationsState) -> None:
    active = migrations.active
    if active is not None:
        _echo(
            f"Migration to {active.migration}, begun {_time(active.migration.at)}: {active.built} of "
            f"{counted(active.documents, 'document')} built. Searches are as before."
        )
        _echo(
            "`parquetry reindex --switch` builds the rest and publishes all of it, `--abandon` gives it up, `parquetry "
            "eval --candidate` compares."
        )
    if migrations.outdated is not None:
        _echo(f"Settings: {migrations.outdated}.")
    if active is not None or migrations.outdated is not None:
        tell()


def _print_size(overview: Overview, candidates: int) -> None:
    tables = ", ".join(f"{each.table} {size_of(each.bytes)}" for each in overview.tables if each.files)
    _echo(f"On disk: {size_of(_total(overview))} ({tables or 'no files'}).")
    gone = overview.chunks_stored - overview.chunks_visible - candidates
    if gone > 0:
        tell(f"{counted(gone, 'chunk is', 'chunks are')} kept only for earlier versions.")
    many = max((each.small_files for each in overview.tables), default=0)
    if many >= MANY_FILES:
        tell(f"{counted(many, 'small file')} in a table: `parquetry compact` writes them together.")
    unnamed = sum(each.unnamed_bytes for each in overview.tables)
    if unnamed:
        _echo(
            f"{size_of(unnamed)} in files of earlier versions and crashed runs: `parquetry vacuum` deletes what it may."
        )
    index = overview.index
    if index is None:
        tell("Search index: none yet; the next search builds it.")
    else:
        behind = overview.version - index.version
        state = f"{counted(behind, 'version')} behind, the next search brings it up to date" if behind else "up to date"
        tell(f"Search index: {size_of(index.bytes)}, {state}.")
    tell(f"Versions: {counted(overview.version, 'publish', 'publishes')}; `parquetry history` lists them.")


def _print_cost(cost: dict[str, Any]) -> None:
    runs = counted(cost["runs"], "run")
    unpriced = cost["unpriced_runs"]
    unknown = f"; unknown for {counted(unpriced, 'run')}, because no price is set for the model" if unpriced else ""
    _echo(f"Cost so far: ${cost['usd']:.4f} for {counted(cost['tokens'], 'token')} in {runs}{unknown}.")


def _echo(text: str) -> None:
    tell_wrapped(text, terminal_width(), hanging="  ", long_words=False)


def _time(at: datetime) -> str:
    return f"{_minute(at)} UTC"


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
