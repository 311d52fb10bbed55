"""Waiting for batches: within a run, or until a later one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from parquetry.planning.costs import Cost
from parquetry.plural import counted
from parquetry.settings.batch_api import BatchApiSettings

if TYPE_CHECKING:
    from parquetry.tasks.batches.lane import BatchLane

Lanes = Sequence["BatchLane[Any]"]


class Patience:
    """The time for which a run waits for its batches.

    Args:
        settings: how long, and how often to look.
        pause: waits that many seconds, or raises because the run was cancelled.
    """

    def __init__(self, settings: BatchApiSettings, pause: Callable[[float], None]) -> None:
        self._end = monotonic() + settings.wait_minutes * 60
        self._seconds = settings.poll_seconds
        self._pause = pause

    def until_they_end(self, lanes: Lanes, collect: Callable[[], bool]) -> bool:
        """Wait until no batch is on its way, or the time is over; True if one ended meanwhile.

        Args:
            lanes: lanes of the run.
            collect: looks at the batches, and has the results of those that ended taken; True if there are any.
        """
        ended = False
        while any(lane.on_their_way for lane in lanes):
            left = self._end - monotonic()
            if left <= 0:
                break
            self._pause(min(self._seconds, left))
            ended |= collect()
        return ended


def suspension(lanes: Lanes, waiting: int, what: str) -> tuple[str, ...]:
    """Return the line on what waits for batches; none if nothing does.

    Args:
        lanes: lanes of the run.
        waiting: number of documents or sessions that wait.
        what: noun for one of them.
    """
    if not waiting:
        return ()
    batches = [batch for lane in lanes for batch in lane.on_their_way]
    subject = counted(waiting, f"{what} waits", f"{what}s wait")
    if not batches:
        return (f"{subject} for a batch that is still to be sent; the next run sends it",)
    since = min(batch.since for batch in batches)
    requests = sum(len(batch.claim.items) for batch in batches)
    return (
        f"{subject} for {counted(len(batches), 'batch', 'batches')} of {counted(requests, 'request')}, on the way "
        f"since {since:%Y-%m-%d %H:%M} UTC; a run after that takes what is done",
    )


def problems(lanes: Lanes) -> tuple[str, ...]:
    """Return what kept batches from being sent or asked about, a line each."""
    return tuple(problem for lane in lanes for problem in lane.problems.values())


def notes(lanes: Lanes) -> tuple[str, ...]:
    """Return what was sent and received, a line each."""
    return tuple(note for lane in lanes for note in lane.notes)


def costs_of(lanes: Lanes) -> tuple[Cost, ...]:
    """Return the costs of the batches that ended, by source."""
    return tuple(cost for lane in lanes for cost in lane.costs)
