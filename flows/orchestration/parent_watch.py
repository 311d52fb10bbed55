"""Processes that end when the program that started them is gone, for any reason.

`python -m parquetry.flows.orchestration.parent_watch ...` runs `prefect ...` that way; flow runs started by a service
use `end_with_starter`.
"""

from __future__ import annotations

import logging
import os
import runpy
import signal
import sys
import threading
import time

from parquetry.garbage import collect_seldom
from parquetry.masked_output import guard_output

STARTER = "PARQUETRY_STARTER"
"""environment variable with the process id of the service that its flow runs depend on"""
_STOP_SECONDS = 10
"""seconds for an orderly stop"""


def end_with_starter() -> None:
    """End this flow run's process when the service that started it is gone.

    Its server is gone, too, and Prefect would retry requests to it for minutes. A run can end at any moment without
    changing the corpus, and its embeddings are reused by the next run.
    """
    starter = os.environ.get(STARTER)
    if starter and int(starter) == os.getppid():
        threading.Thread(target=_end_without, args=(int(starter),), name="starter-watch", daemon=True).start()


def _end_without(starter: int) -> None:
    while os.getppid() == starter:
        time.sleep(1)
    os._exit(1)


def _watch_input() -> None:
    """Stop when standard input, a pipe from the starter, is closed."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_STOP_SECONDS)
    os._exit(1)


def _make_database() -> None:
    try:
        from parquetry.flows.orchestration.new_database import create_database

        create_database()
    except (ImportError, AttributeError, TypeError):
        # Another release of Prefect: its server makes the database, more slowly.
        logging.getLogger(__name__).warning("Prefect's server has to make its database itself", exc_info=True)


if __name__ == "__main__":
    # All of Prefect is imported.
    collect_seldom()
    threading.Thread(target=_watch_input, name="starter-watch", daemon=True).start()
    guard_output()
    _make_database()
    sys.argv[0] = "prefect"
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)
