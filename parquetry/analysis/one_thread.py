"""Matrix products in one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Leave the other processors to searches: threads that wait for each other are slow on a busy machine.

    Without the extra `map`, which brings threadpoolctl, nothing is limited.
    """
    try:
        # Libraries that are loaded later would not be limited.
        import_module("sklearn.manifold")
        limited: AbstractContextManager[Any] = import_module("threadpoolctl").threadpool_limits(1)
    except ImportError:
        return nullcontext()
    return limited
