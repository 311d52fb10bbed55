"""Freed memory goes back to the system, instead of waiting in the C library for the next allocation.

Documents arrive as a few large blocks among millions of small objects. The GNU C library learns from the first large
block that is freed to keep such blocks, and keeps a heap for each thread: after a run over manuals, 110 MB in which
nothing was stored. Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Protocol, runtime_checkable

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""parameters of mallopt(3)"""
_LARGE_BYTES = 512 * 1024
"""bytes of a block that goes back to the system as soon as it is freed"""
_KEPT_BYTES = 1024 * 1024
"""bytes that may be free at the end of a heap"""
_HEAPS = 2
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""variable that PyArrow reads when it is imported"""
_owns_process = False


@runtime_checkable
class Relievable(Protocol):
    """Embedder or source that holds more memory than its next use needs."""

    def give_memory_back(self) -> None:
        """Free what is read, computed or started again when it is needed, such as after the last of many documents."""
        ...


def keep_little() -> None:
    """Have this process return large blocks at once, and let its threads share heaps; for programs, not libraries.

    PyArrow, if it is imported after this, takes its memory from the C library, too: its own allocator keeps what was
    freed for the next table, 60 MB and more while documents are read and embedded. A variable of the user's wins.
    """
    global _owns_process
    _owns_process = True
    adjust = _function("mallopt")
    if adjust is not None:
        os.environ.setdefault(_ARROW_POOL, "system")
        adjust(_MMAP_THRESHOLD, _LARGE_BYTES)
        adjust(_TRIM_THRESHOLD, _KEPT_BYTES)
        adjust(_ARENA_MAX, _HEAPS)


def owns_process() -> bool:
    """True if this process runs one of our programs; False if another program uses the library."""
    return _owns_process


def give_back() -> None:
    """Return all freed memory to the system; takes a hundredth of a second, and more with many objects."""
    gc.collect()
    trim()


def trim() -> None:
    """Return freed memory to the system without looking for cycles first."""
    release = _function("malloc_trim")
    if release is not None:
        release(0)


@cache
def _function(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
