"""Finished chats that were handed in: kept as files, one folder for each owner, which the sessions flow reads."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parquetry import ids
from parquetry.errors import StorageError
from parquetry.serving.service.state import PRIVATE_FILE
from parquetry.storage.files.durable import PRIVATE, make_folder, replace

FOLDER = "sessions"


def keep_session(
    state: Path,
    namespace: str,
    owner: Sequence[str | None],
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
    folder = state / FOLDER / namespace / ids.settings_hash({"owner": list(owner)})
    file = folder / f"{ids.content_hash(session_id.encode())[:32]}.json"
    content = json.dumps({"id": session_id, "messages": list(messages), "metadata": dict(metadata)}, ensure_ascii=False)
    try:
        make_folder(folder, PRIVATE)
        unfinished = file.with_suffix(f".{secrets.token_hex(4)}")
        unfinished.touch(PRIVATE_FILE)
        unfinished.write_bytes(content.encode("utf-8", "surrogatepass"))
        replace(unfinished, file)
    except OSError as error:
        raise StorageError(f"the session cannot be kept in {folder}: {error.strerror}") from error
    return folder
