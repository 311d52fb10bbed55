"""Finished chats that were handed in: kept as files, one folder for each owner, which the sessions flow reads."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parquetry import ids
from parquetry.errors import StorageError
from parquetry.model import Visibility
from parquetry.serving.state.folder import PRIVATE_FILE
from parquetry.sources.uploads.identity import namespace_folder
from parquetry.storage.files.durable import PRIVATE, make_folder, replace, sync

FOLDER = "sessions"
STATEMENTS = "statements"
"""folder of single statements to remember"""
Owner = tuple[str | None, str | None]
"""user and organization"""


def keep_session(
    state: Path,
    namespace: str,
    owner: Owner,
    session_id: str,
    messages: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any],
) -> Path:
    """Keep a finished chat; the same session again replaces it, and is one session.

    Args:
        state: state folder of the service.
        namespace: namespace of what is learned from it.
        owner: user and organization of the session.
        session_id: id of the session, unique for its owner.
        messages: `role` and `content` of each, and what else it has.
        metadata: kept beside the messages.

    Returns:
        The folder of the owner's sessions.

    Raises:
        StorageError: the file cannot be written.
    """
    folder = _folder(state / FOLDER, namespace, owner)
    content = {"id": session_id, "messages": list(messages), "metadata": dict(metadata)}
    _write(folder / f"{ids.content_hash(session_id.encode())[:32]}.json", content)
    return folder


def keep_statement(state: Path, namespace: str, owner: Owner, level: Visibility, text: str) -> Path:
    """Keep a statement as a session of its own; the same statement again is another session.

    Args:
        state: state folder of the service.
        namespace: namespace of the statement.
        owner: user and organization of the statement.
        level: its visibility.
        text: the statement.

    Returns:
        The file; its name is that of no other.

    Raises:
        StorageError: the file cannot be written.
    """
    file = _folder(state / STATEMENTS, namespace, owner) / level / f"{secrets.token_hex(16)}.json"
    message = {"role": "user", "content": text, "created_at": datetime.now(UTC).isoformat()}
    _write(file, {"messages": [message]})
    return file


def _folder(above: Path, namespace: str, owner: Owner) -> Path:
    # Not every name of a namespace is one of a folder: `..` is none.
    return above / namespace_folder(namespace) / _mark(owner[0]) / _mark(owner[1])


def _write(file: Path, session: Mapping[str, Any]) -> None:
    folder, content = file.parent, json.dumps(session, ensure_ascii=False)
    unfinished = file.with_suffix(f".{secrets.token_hex(4)}")
    try:
        make_folder(folder, PRIVATE)
        try:
            unfinished.touch(PRIVATE_FILE)
            unfinished.write_bytes(content.encode("utf-8", "surrogatepass"))
            replace(unfinished, file)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"the session cannot be kept in {folder}: {error.strerror}") from error


def forget_sessions(state: Path, user_id: str) -> int:
    """Delete the chats and statements of a user; return their number.

    Raises:
        StorageError: a file cannot be deleted.
    """
    deleted = 0
    try:
        for above in (state / FOLDER, state / STATEMENTS):
            for folder in above.glob(f"*/{_mark(user_id)}"):
                deleted += sum(1 for _ in folder.rglob("*.json"))
                shutil.rmtree(folder)
                sync(folder.parent)
    except OSError as error:
        raise StorageError(f"{error.filename or state}: {error.strerror or error}; run this again") from error
    return deleted


def _mark(name: str | None) -> str:
    """Return a name for a folder, for any name of a user or organization."""
    return "none" if name is None else ids.content_hash(name.encode("utf-8", "surrogatepass"))[:32]
