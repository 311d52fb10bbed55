"""How long the processor works on something, which other work of the machine does not change much."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType


def seconds_of(work: Callable[[], object], most: float) -> float:
    """Seconds of the processor that some work takes; infinite, and the work is given up, if more than `most`."""

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
