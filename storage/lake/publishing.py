"""Publish beside other runs: when one of them was first, decide again from what it published."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from parquetry.errors import PublishConflict

Result = TypeVar("Result")
ATTEMPTS = 8
"""attempts to publish before giving up because other runs keep being first"""


def publish_with_retry(publish: Callable[[PublishConflict | None], Result], otherwise: str) -> Result:
    """Return the result of a publish; repeat it while other runs are first.

    Args:
        publish: decides and publishes; called with the conflict that ended the previous attempt, None for the first.
        otherwise: what has become of the run, and what to do, if all attempts fail; the end of the message.

    Raises:
        PublishConflict: other runs published first each time.
    """
    conflict: PublishConflict | None = None
    for _ in range(ATTEMPTS):
        try:
            return publish(conflict)
        except PublishConflict as error:
            conflict = error
    raise PublishConflict(f"other runs published {ATTEMPTS} times meanwhile; {otherwise}") from conflict
