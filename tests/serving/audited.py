"""Events in the audit log of a service, which writes that of a stream after its last byte."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parquetry.serving.access.audit import audit_events


def events_from_now(state: Path) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that returns the events since this call, once there are as many as asked for: one by default.

    Args:
        state: state folder of the service.
    """
    before = len(list(audit_events(state)))

    def arrived(count: int = 1) -> list[dict[str, Any]]:
        end = time.monotonic() + 60
        while len(found := list(audit_events(state))[before:]) < count and time.monotonic() < end:
            time.sleep(0.01)
        return found

    return arrived
