"""`python -m flows.guarded ...` is `prefect ...` that ends when the program which started it is gone."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

_STOP_SECONDS = 10
"""for an orderly stop"""


def _watch() -> None:
    """Standard input is a pipe from the starter; it ends when the starter does, however that happens."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_watch, name="starter-watch", daemon=True).start()
    sys.argv[0] = "prefect"
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)
