"""Threads for calls to services, which can be abandoned when their results are no longer needed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager


@contextmanager
def threads_of(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Run a thread pool that is joined at the end, but not when an error or an interrupt leaves the block.

    Results of abandoned threads are discarded: an unresponsive service must not delay a caller that has given up.

    Args:
        count: maximum threads.
        name: prefix of their names.
    """
    threads = ThreadPoolExecutor(count, thread_name_prefix=name)
    with ExitStack() as given_up:
        given_up.callback(threads.shutdown, wait=False, cancel_futures=True)
        yield threads
        given_up.pop_all()
    threads.shutdown()
