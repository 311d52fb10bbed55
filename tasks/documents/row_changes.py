"""Rows of planned changes that need nothing but a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from parquetry.model import DocumentRow
from parquetry.planning.diff import Change
from parquetry.planning.rows import rows_without_work
from parquetry.tasks.documents.run import DocumentRun

_AT_A_TIME = 1000
"""changes in memory at once"""


def rows_of_changes(changes: Iterable[Change], run: DocumentRun) -> Iterator[DocumentRow]:
    """Yield the rows of changes with effort `row`, and count their documents as read."""
    kept = (change for change in changes if change.effort == "row")
    while some := list(islice(kept, _AT_A_TIME)):
        extracted = extracted_metadata(run, some)
        for change in some:
            own = extracted.get(change.base.revision) if change.base else None
            yield from rows_without_work(change, run.stamp, own)
            run.reading.read(change)


def extracted_metadata(run: DocumentRun, changes: Iterable[Change]) -> dict[int, Mapping[str, Any]]:
    """Return the metadata that uploads have of their own, by their present revision."""
    revisions = {
        change.base.revision
        for change in changes
        if change.base is not None and change.base.revision and change.item is not None and change.item.submission
    }
    return {
        revision: text.metadata or {} for revision, text in (run.stored.texts(revisions) if revisions else {}).items()
    }
