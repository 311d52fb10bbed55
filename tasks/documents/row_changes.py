"""Rows of planned changes that need nothing but a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from parquetry.model import DocumentRow
from parquetry.planning.diff import Change
from parquetry.planning.rows import rows_without_work
from parquetry.tasks.documents.reading import extracted_metadata
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
