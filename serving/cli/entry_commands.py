"""Commands on knowledge entries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer

from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.entry_output import print_decision, print_entry, print_undone
from parquetry.serving.cli.filter_options import OrgOption, UserOption, caller_of
from parquetry.serving.cli.options import (
    MOST_ROWS,
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    VersionOption,
    settings_for,
)
from parquetry.serving.cli.output import print_json
from parquetry.serving.search.entry_reading import EntryStory, Row, live_entries, live_texts, stories, texts_of
from parquetry.serving.search.entry_reading import decisions as read_decisions
from parquetry.serving.search.known_names import check_namespace
from parquetry.sessions.model import DecisionKind, EntryKind
from parquetry.storage.database import Connection
from parquetry.storage.lake.damage import naming_damage
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.snapshot_views import connect_readable
from parquetry.storage.search.filters import Caller, restrict
from parquetry.storage.search.names import ENTRIES_AND_DECISIONS


def entries(
    kind: Annotated[EntryKind | None, typer.Option(help="Only those.")] = None,
    contains: Annotated[str | None, typer.Option(metavar="TEXT", help="Only entries whose text contains this.")] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show the origin of each entry: decisions, sessions, evidence.")
    ] = False,
    user: UserOption = None,
    org: OrgOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the knowledge entries learned from chat sessions."""
    settings, caller = settings_for(config, corpus), caller_of(user, org)
    snapshot = Lake(settings.corpus.root).snapshot(version, needed=["documents"])
    with _views(snapshot, caller) as connection:
        check_namespace(connection, settings, namespace, caller)
        found = live_entries(connection, namespace, kind, contains)
        told = stories(connection, found) if history else {}
        if as_json:
            listed = [_entry_json(row, told.get((row["namespace"], row["entry_id"]))) for row in found]
            print_json({"version": snapshot.version, "entries": listed})
            return
        opposite = live_texts(connection, {each for row in found for each in row["contradicts"]})
        texts = texts_of(connection, [each for story in told.values() for each in story.decisions])
    for row in found:
        print_entry(row, opposite, told.get((row["namespace"], row["entry_id"])), texts)
    tell("No entries." if not found else f"{counted(len(found), 'entry')}.")


@contextmanager
def _views(snapshot: Snapshot, caller: Caller | None) -> Iterator[Connection]:
    """Yield the views of a version, limited to what the caller may see."""
    with naming_damage(snapshot), closing(connect_readable(snapshot)) as connection:
        if caller is not None:
            restrict(connection, caller)
        yield connection


def _entry_json(entry: Row, story: EntryStory | None) -> dict[str, Any]:
    if story is None:
        return dict(entry)
    return {**entry, "history": list(story.decisions), "sessions_of_others": story.others}


def decisions(
    run: Annotated[str | None, typer.Option(metavar="ID", help="Only decisions of this run.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="URI", help="Only decisions about this session; part of its uri is enough.")
    ] = None,
    kind: Annotated[DecisionKind | None, typer.Option(help="Only those.")] = None,
    entry: Annotated[str | None, typer.Option(metavar="ID", help="Only decisions that name this entry.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MOST_ROWS, help="Number of decisions to show, newest first.")
    ] = None,
    user: UserOption = None,
    org: OrgOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the decisions about entries, newest first."""
    settings, caller = settings_for(config, corpus), caller_of(user, org)
    snapshot = Lake(settings.corpus.root).snapshot(version, needed=["documents"])
    with _views(snapshot, caller) as connection:
        check_namespace(connection, settings, namespace, caller, ENTRIES_AND_DECISIONS)
        wanted = entry.removeprefix("entry:") if entry is not None else None
        found = read_decisions(connection, namespace, run, session, kind, wanted, limit)
        if as_json:
            print_json({"version": snapshot.version, "decisions": found})
            return
        texts = texts_of(connection, found)
    for row in found:
        print_decision(row, texts)
    tell(f"{counted(len(found), 'decision')}." if found else "No decisions.")


def undo(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Id of the decision, as listed by `decisions`.")],
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Undo a decision about entries.

    What it replaced is restored.
    """
    from parquetry.planning.rows import new_stamp
    from parquetry.storage.entries.undoing import undo_decision

    settings = settings_for(config, corpus)
    Lake(settings.corpus.root)
    lake = Lake(settings.corpus.root, create=True, single_writer=settings.corpus.single_writer)
    done = undo_decision(lake, decision, new_stamp())
    if not as_json:
        print_undone(done)
        return
    swap = done.undoing.decision
    print_json(
        {
            "run_id": done.run_id,
            "version": done.version,
            "decision_id": swap.decision_id,
            "undoes": swap.undoes,
            "back": [_named(each, done.texts) for each in swap.adds],
            "gone": [_named(each, done.texts) for each in swap.retires],
            "affected": [asdict(each) for each in done.undoing.affected],
        }
    )


def _named(entry_id: str, texts: dict[str, str]) -> dict[str, str | None]:
    return {"entry_id": entry_id, "text": texts.get(entry_id)}
