"""Checksums of shards, as recorded in the commits that add them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from urllib.parse import unquote

from parquetry.storage.files.layout import Layout, Table
from parquetry.storage.lake.commits import SHARDS, open_table
from parquetry.storage.lake.seals import fault
from parquetry.storage.lake.staging import COMMIT, names_in

_FEW = 20
"""names that are looked for in each commit before it is taken apart"""


def recorded_hashes(layout: Layout, table: Table, names: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of shards as hexadecimal digits; shards of earlier programs have none.

    In a local table, commits are read from the newest backwards and no further than needed: the last few hold
    everything published since the last index was built. Damaged commits are skipped.

    Args:
        layout: layout of the corpus.
        table: table of the shards.
        names: names of the shards.

    Raises:
        StorageError: the log of a table on an object store cannot be read.
    """
    if not names:
        return {}
    if not layout.is_local:
        found: dict[str, str] = {}
        for entry in open_table(layout, table).history():
            found |= json.loads(entry.get(SHARDS) or "{}")
        return {name: found[name] for name in names if name in found}
    return _newest_first(Path(layout.log(table)), names)


def _newest_first(log: Path, names: Collection[str]) -> dict[str, str]:
    left, found = set(names), dict[str, str]()
    commits = [name for name in names_in(log) if COMMIT.fullmatch(name)] if log.is_dir() else []
    for name in sorted(commits, reverse=True):
        if not left:
            break
        content = (log / name).read_bytes()
        # Most commits add none of a few, and taking one apart takes ten times as long as reading it.
        if len(left) <= _FEW and not any(each.encode() in content for each in left):
            continue
        if fault(content) is not None:
            # The commit is below a checkpoint, or the table could not have been opened.
            continue
        for line in content.splitlines():
            action = json.loads(line)
            told = json.loads(action.get("commitInfo", {}).get(SHARDS) or "{}")
            found |= {shard: told[shard] for shard in told.keys() & set(names)}
            left.discard(unquote(action.get("add", {}).get("path", "")))
    return found
