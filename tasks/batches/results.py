"""Results of a batch that has ended: stored where the ordinary way looks, then recorded, by any process of a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from parquetry.errors import DocumentError, ServiceRefused, TransientError
from parquetry.llm.batch_api import REQUEST_ENDED, RemoteBatch, ResultLine, result_lines
from parquetry.storage.lake.batch_ends import BatchEnd
from parquetry.storage.lake.batches import BatchItem, BatchRecords, OpenBatch
from parquetry.tasks.batches.lane_user import BatchOutcome, LaneUser

Result = TypeVar("Result")
STORED_TOGETHER = 4096
"""results that are stored at a time, which bounds the memory"""


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """A batch that has ended at its service, and whose end is not recorded."""

    batch: OpenBatch
    remote: RemoteBatch

    @property
    def number(self) -> int:
        return self.batch.number

    @property
    def host(self) -> str:
        """Empty: results of all batches are taken in one queue."""
        return ""


def take_results(
    ended: EndedBatch, user: LaneUser[Result], records: BatchRecords, run_id: str, now: Callable[[], datetime]
) -> str | None:
    """Store the results of a batch, record its end, and delete its files at the service.

    Args:
        ended: the batch.
        user: what its requests are for.
        records: record of the corpus.
        run_id: run that counts the cost.
        now: clock, UTC.

    Returns:
        Why the results cannot be read now; None if they were stored.

    Raises:
        StorageError: they, or the end, cannot be stored.
    """
    try:
        _take(ended, user, records, run_id, now)
    except TransientError as error:
        return str(error)
    except ServiceRefused as error:
        return f"{error}; `parquetry batches --drop {ended.number}` gives them up"
    return None


def _take(
    ended: EndedBatch, user: LaneUser[Result], records: BatchRecords, run_id: str, now: Callable[[], datetime]
) -> None:
    batch, remote = ended.batch, ended.remote
    outcome = BatchOutcome()
    _store(ended, user, outcome)
    items = {item.custom_id for item in batch.claim.items}
    if remote.status == "failed":
        outcome.ordinary |= {batch.claim.items[line - 1].custom_id for line in _at_fault(ended)}
    elif remote.status == "completed":
        # Requests without an answer or an error.
        outcome.ordinary |= items - outcome.answered
    end = BatchEnd(
        run_id=run_id,
        status=remote.status,
        requests=len(items),
        answered=len(outcome.answered),
        duplicates=outcome.duplicates,
        failed=outcome.failed,
        paid=tuple(outcome.paid[place] for place in range(len(batch.claim.sources))),
        usage=outcome.usage,
        priced=user.priced,
        parts=outcome.parts,
        ordinary=frozenset(outcome.ordinary),
    )
    if records.end(batch.number, end, now(), remote.id):
        user.service.delete_files(remote.files)


def _at_fault(ended: EndedBatch) -> Iterator[int]:
    """Yield the 1-based numbers of the lines for which a service refused a batch."""
    count = len(ended.batch.claim.items)
    yield from (line for _, line in ended.remote.errors if line and 0 < line <= count)


def _store(ended: EndedBatch, user: LaneUser[Result], outcome: BatchOutcome) -> None:
    batch = ended.batch
    items = {item.custom_id: item for item in batch.claim.items}
    results: list[tuple[BatchItem, Result]] = []
    for line in _lines(ended.remote, user):
        item = items.get(line.custom_id)
        if item is None:
            continue
        if line.custom_id in outcome.answered:
            outcome.duplicates += 1
            continue
        result = _result(line, item, user, outcome)
        if result is None or item.place.partition("/")[0] in batch.forgotten:
            continue
        results.append((item, result))
        if len(results) == STORED_TOGETHER:
            user.store(batch, outcome.parts, results)
            results, outcome.parts = [], outcome.parts + 1
    if results:
        user.store(batch, outcome.parts, results)
        outcome.parts += 1


def _lines(remote: RemoteBatch, user: LaneUser[Result]) -> Iterator[ResultLine]:
    """Yield the lines of both files of a batch, one file on disk at a time."""
    for file_id in (remote.output_file, remote.error_file):
        if file_id is not None:
            with tempfile.TemporaryFile(prefix="parquetry-batch-") as file:
                user.service.download(file_id, file)
                yield from result_lines(file)


def _result(line: ResultLine, item: BatchItem, user: LaneUser[Result], outcome: BatchOutcome) -> Result | None:
    """Return the result in a line, and count its cost; None if the request failed."""
    code = line.code
    if not code:
        try:
            result, usage = user.read(line.body)
        except (TransientError, DocumentError) as error:
            code = error.reason
        else:
            outcome.answered.add(line.custom_id)
            outcome.usage += usage
            outcome.paid[item.source] += usage.input_tokens + usage.output_tokens
            return result
    outcome.failed[code] += 1
    if code not in REQUEST_ENDED:
        outcome.ordinary.add(line.custom_id)
    return None
