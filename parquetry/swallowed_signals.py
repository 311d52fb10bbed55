"""Signals whose handlers raise, and what becomes of them where Python discards the exception."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from parquetry.masked_output import guard_output

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_HOOK_SECONDS = 0.1
"""seconds for `sys.unraisablehook` to return"""


def send_swallowed_again(
    number: signal.Signals, error: type[BaseException], is_handled: Callable[[], bool] = lambda: True
) -> None:
    """Send this process a signal again if Python swallowed the exception that its handler raised.

    An exception that is raised during an object's deletion, or by the callback of a weak reference, is printed and
    discarded: the process would continue as if nobody had asked it to stop.

    Args:
        number: the signal.
        error: raised by its handler.
        is_handled: returns False where the signal would do harm, because the handler is gone.
    """
    # Its hook would replace this one if it were called later.
    guard_output()
    previous_hook = sys.unraisablehook
    swallowed: SimpleQueue[None] = SimpleQueue()

    def send_again() -> None:
        while True:
            swallowed.get()
            # A signal sent inside the hook would be swallowed again.
            time.sleep(_HOOK_SECONDS)
            if is_handled():
                os.kill(os.getpid(), number)

    def on_swallowed(ignored: UnraisableHookArgs) -> None:
        if isinstance(ignored.exc_value, error):
            swallowed.put(None)
        else:
            previous_hook(ignored)

    threading.Thread(target=send_again, name="swallowed-signals", daemon=True).start()
    sys.unraisablehook = on_swallowed
