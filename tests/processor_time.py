"""Processor time of some work, which other load on the machine affects little."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType


def seconds_of(work: Callable[[], object], most: float) -> float:
    """Return the processor time of some work in seconds; abort the work and return infinity if more than `most`."""

    def over(_: int, __: FrameType | None) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    started = time.process_time()
    try:
        work()
        return time.process_time() - started
    except TimeoutError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
