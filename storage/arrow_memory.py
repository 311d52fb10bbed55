"""Memory of PyArrow."""

from __future__ import annotations

import pyarrow as pa


def give_back() -> None:
    """Return the memory that PyArrow keeps for its next tables to the system."""
    pa.default_memory_pool().release_unused()
