"""Processes that end when the program which started them is gone, however that happened.

`python -m parquetry.flows.orchestration.guarded ...` is `prefect ...` that does; flow runs that a service starts do by
`end_with_starter`.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

from parquetry.masked_output import guard_output

STARTER = "PARQUETRY_STARTER"
"""environment variable: process id of a service whose flow runs are of no use without it"""
_STOP_SECONDS = 10
"""for an orderly stop"""


def end_with_starter() -> None:
    """End this flow run's process when the service that started it is gone.

    Its server is gone with it, for which Prefect would go on asking for minutes. A run that ends at any moment leaves
    the corpus as it was, and what it embedded is found again.
    """
    starter = os.environ.get(STARTER)
    if starter and int(starter) == os.getppid():
        threading.Thread(target=_end_without, args=(int(starter),), name="starter-watch", daemon=True).start()


def _end_without(starter: int) -> None:
    while os.getppid() == starter:
        time.sleep(1)
    os._exit(1)


def _watch_input() -> None:
    """Standard input is a pipe from the starter; it ends when the starter does."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_watch_input, name="starter-watch", daemon=True).start()
    guard_output()
    sys.argv[0] = "prefect"
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)
