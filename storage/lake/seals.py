"""Checksums of commits, to detect a truncated commit or a changed bit.

A local commit is sealed: the SHA-256 of its other bytes stands at the beginning of its `commitInfo`. Commits on object
stores, which check their content by themselves, and those of earlier programs have no seal; they must be complete JSON
with more than the `commitInfo` in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_OPENING = b'{"commitInfo":{'
_SEAL = re.compile(rb'"seal":"([0-9a-f]{64})",')
_FIRST_UNSEALED = b'"timestamp":'
"""key of `commitInfo` that delta-rs writes first"""
_ACTIONS = frozenset({"commitInfo", "protocol", "metaData", "add", "remove", "txn", "domainMetadata", "cdc"})


def sealed(commit: bytes) -> bytes:
    """Return a commit with its checksum inserted.

    Args:
        commit: as delta-rs wrote it.
    """
    begin = commit.index(_OPENING) + len(_OPENING)
    seal = f'"seal":"{hashlib.sha256(commit).hexdigest()}",'.encode()
    return commit[:begin] + seal + commit[begin:]


def fault(commit: bytes) -> str | None:
    """Return the fault in a commit; None if it is intact.

    Args:
        commit: content of its file.
    """
    if not commit.strip():
        return "is empty"
    begin = commit.find(_OPENING) + len(_OPENING)
    seal = _SEAL.match(commit, begin)
    if seal is not None:
        rest = commit[:begin] + commit[seal.end() :]
        same = hashlib.sha256(rest).hexdigest().encode() == seal[1]
        return None if same else "is not what was written: its checksum differs"
    if begin >= len(_OPENING) and not commit.startswith(_FIRST_UNSEALED, begin):
        return "is not what was written: its checksum cannot be read"
    return _unsealed_fault(commit)


def _unsealed_fault(commit: bytes) -> str | None:
    kinds: list[str] = []
    for number, line in enumerate(commit.splitlines(), start=1):
        try:
            action: Any = json.loads(line)
        except ValueError:
            return f"is cut short or damaged in line {number}: that is not JSON"
        if not isinstance(action, dict) or len(action) != 1 or not _ACTIONS.issuperset(action):
            return f"is damaged in line {number}: that is no action of Delta Lake"
        kinds.extend(action)
    if kinds.count("commitInfo") != 1 or len(kinds) == 1:
        return "is cut short: a part of it is missing"
    return None
