"""Erasure of a user from the state of the service: tokens and audit events."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from parquetry.errors import StorageError
from parquetry.serving.access.audit import FILE, LOCK, audit_files, former_files, put_aside
from parquetry.serving.access.token_table import FILE as TOKENS
from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.state.folder import PRIVATE_FILE
from parquetry.storage.files.durable import replace

_LOCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Result of an erasure."""

    tokens: int
    """tokens deleted"""
    events: int
    """audit events deleted"""


def forget_access(state: Path, user_id: str) -> Forgotten:
    """Delete the tokens and audit events of a user, while the service goes on.

    Args:
        state: state folder of a service; nothing happens if there is none.
        user_id: the user.

    Raises:
        StorageError: a file cannot be written.
    """
    tokens = 0
    if (state / TOKENS).exists():
        with TokenStore(state) as store:
            tokens = store.forget(user_id)
    events = 0
    try:
        if audit_files(state):
            with FileLock(state / LOCK, timeout=_LOCK_SECONDS, mode=PRIVATE_FILE):
                if (state / FILE).exists():
                    # Requests that arrive from now on are written to a new file.
                    put_aside(state, time.time())
                events = sum(_without(file, user_id) for file in former_files(state))
    except OSError as error:
        raise StorageError(f"{error.filename or state}: {error.strerror or error}; run this again") from error
    return Forgotten(tokens, events)


def _without(file: Path, user_id: str) -> int:
    """Write a file again without the events of a user; return their number."""
    while True:
        size = file.stat().st_size
        lines = file.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if _user_of(line) != user_id]
        if len(kept) == len(lines):
            return 0
        written = file.with_suffix(".new")
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb") as stream:
            stream.writelines(kept)
        # A request that had opened the file before it was put aside may have written since.
        if file.stat().st_size == size:
            replace(written, file)
            return len(lines) - len(kept)


def _user_of(line: bytes) -> str | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    user = event.get("user_id") if isinstance(event, dict) else None
    return user if isinstance(user, str) else None
