"""Threads that wait for services, and that nobody has to wait for once their work is not wanted any more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager


@contextmanager
def threads_of(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Threads that are waited for at the end, but not when the block is left by an error or an interrupt.

    What they then still do comes to nothing: a service that does not answer must not hold up who has given it up.

    Args:
        count: most at a time.
        name: that theirs begin with.
    """
    threads = ThreadPoolExecutor(count, thread_name_prefix=name)
    with ExitStack() as given_up:
        given_up.callback(threads.shutdown, wait=False, cancel_futures=True)
        yield threads
        given_up.pop_all()
    threads.shutdown()
