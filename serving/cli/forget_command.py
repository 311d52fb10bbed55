"""The command `forget`: erase a user's data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from parquetry.errors import IndexNotWritten, RefusedError, SettingsError
from parquetry.planning.rows import new_stamp
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import confirmed, print_json
from parquetry.storage.lake.lake import Lake

if TYPE_CHECKING:
    from parquetry.storage.maintenance.erasure import Erasure


def forget(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="User whose data is erased, as in `user_id`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase a user's documents, entries and sessions for good.

    Data that only this user may see is erased from all files, including earlier versions. This cannot be undone.
    """
    from parquetry.serving.service.forgetting import forget_in_state
    from parquetry.serving.state.folder import state_place
    from parquetry.sources.uploads.store import UploadStore
    from parquetry.storage.maintenance.erasure import forget_user

    if not user.strip():
        raise SettingsError("--user must name a user")
    settings = settings_for(config, corpus)
    root = settings.corpus.root
    Lake(root)
    if not yes:
        _ask(user, root)
    lake = Lake(root, create=True, single_writer=settings.corpus.single_writer)
    state = forget_in_state(state_place(settings), user)
    # Before the corpus, which would take them in again.
    uploads = UploadStore(settings).forget(user)
    done = forget_user(lake, user, new_stamp(), settings.search)
    if as_json:
        print_json(
            {
                "run_id": done.run_id,
                "version_before": done.version_before,
                "version": done.version,
                "rows": dict(done.rows),
                "files_rewritten": done.files_rewritten,
                "files_deleted": done.files_deleted,
                "bytes_deleted": done.bytes_deleted,
                "answers_deleted": done.answers_deleted,
                "files_left": done.files_left,
                "masked": done.masked,
                "index_error": done.index_error,
                "uploads": uploads,
                **state.parts,
            }
        )
    else:
        deleted = [counted(count, name) for name, count in state.named.items() if count]
        if deleted:
            tell(f"Deleted from the service: {', '.join(deleted)}.")
        if uploads:
            tell(f"Deleted {counted(uploads, 'upload')} and what they hold.")
        _print(done, root)
    if done.index_error is not None:
        raise typer.Exit(IndexNotWritten.exit_code)


def _print(done: Erasure, root: str) -> None:
    told = ", ".join(f"{count} of {table}" for table, count in done.rows.items()) or "none"
    tell(f"Rows erased: {told}.")
    tell(
        f"{counted(done.files_rewritten, 'file')} written again or dropped; deleted: "
        f"{counted(done.files_deleted, 'file')} of {counted(done.bytes_deleted, 'byte')}, "
        f"{counted(done.answers_deleted, 'answer')} of language models, and the search index, which "
        f"{'is built anew' if done.index_error is None else f'is not written: {done.index_error}'}."
    )
    for line in done.masked:
        tell(f"Secrets: {line}.")
    if done.version != done.version_before:
        tell(
            f"Corpus {root}: version {done.version}. Earlier versions that held what was erased cannot be read or "
            "restored any more."
        )
    tell("What sources still hold comes back with the next refresh: take it out there, or exclude it.")
    if done.files_left:
        tell(
            f"{counted(done.files_left, 'file holds', 'files hold')} texts of runs that may still be going on, of "
            "whoever; run this again tomorrow."
        )


def _ask(user: str, root: str) -> None:
    """Ask for confirmation, and return only if it is given.

    Raises:
        RefusedError: standard input is not a terminal, or the answer is no.
    """
    what = f"erase all documents, entries and sessions that only user {user!r} may see from {root}, for good"
    if not sys.stdin.isatty():
        raise RefusedError(f"this would {what}. If that is meant, run again with --yes")
    if not confirmed(f"This will {what}. Go on?", err=True):
        raise RefusedError("nothing was erased")
