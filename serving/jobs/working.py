"""Work of the process that carries out jobs, and keeps the sources of `parquetry serve TARGET...` fresh.

Settings come in the environment, targets in the first line of standard input; a further line says to begin nothing long
any more, and its end means to stop.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from filelock import FileLock, Timeout

from parquetry.errors import ParquetryError, StorageError
from parquetry.flows.local import api_is_configured
from parquetry.masked_output import guard_output
from parquetry.model import RawDocument
from parquetry.plural import counted
from parquetry.process_folder import remove_process_folder
from parquetry.serving.jobs.context import JobContext, failure_of
from parquetry.serving.jobs.execute import lanes_of, stop_all
from parquetry.serving.jobs.keeping_fresh import REMOTE_SECONDS, Freshness, ProgressLine, refresh_scopes
from parquetry.serving.jobs.lines import shown, tell_line
from parquetry.serving.jobs.set_aside import SetAside
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.jobs.watching import scopes_to_watch, watched_of
from parquetry.serving.jobs.withdrawing import changes_in_use
from parquetry.serving.state.environment import settings_from_environment
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import Settings
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.registry import Scope
from parquetry.sources.uploads.store import UploadStore, root_of_uploads
from parquetry.tasks.documents.models import models_of
from parquetry.tasks.engine.base import Cancelled
from parquetry.tasks.engine.workers import WorkerPool
from parquetry.telemetry.json_logs import log_service, say

log = logging.getLogger("parquetry")
LOCK = "jobs.lock"
"""file that the process which carries out the jobs of a state folder holds"""
DRAIN = "drain"
"""line on standard input: stop runs over whole sources, and go on with small writes"""
FRESH_AGAIN_SECONDS = 30.0
"""seconds until sources are watched again after an error"""
STOP_SECONDS = 8.0
"""seconds for the work in progress to reach a safe point; it can be ended at any other, too"""
_LOOK_SECONDS = 0.5
_TEND_SECONDS = 60.0
_WARM = RawDocument(b"# Warm\n\nA text.\n", "warm.md")


def work() -> None:
    """Carry out jobs until told to stop."""
    guard_output()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        given = json.loads(sys.stdin.readline() or "{}")
        settings = settings_from_environment()
        log_service(settings.observability)
        code = _carry_out(settings, given, stopping)
    except ParquetryError as error:
        for line in error.lines:
            say(f"parquetry: {line}", is_problem=True)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    remove_process_folder()
    # Threads may still wait for a service, and DuckDB reports leaks of objects that are alive at the end.
    os._exit(code)


def _carry_out(settings: Settings, given: dict[str, Any], stopping: threading.Event) -> int:
    state = state_folder(settings)
    drain: list[Callable[[], None]] = []
    threading.Thread(target=_listen, args=(stopping, drain), name="orders", daemon=True).start()
    lock = FileLock(state / LOCK)
    if not _hold(lock, stopping):
        return 0
    targets = tuple(given.get("targets") or ())
    scopes = scopes_to_watch(settings, targets, given.get("namespace")) if targets else ()
    context = JobContext(
        settings,
        state,
        JobStore(state),
        UploadStore(settings),
        scopes,
        lambda text: tell_line(ProgressLine(text)),
        shown,
    )
    drain.append(context.runs.stop)
    _recover(context)
    lanes = lanes_of(context, by_prefect=api_is_configured())
    for lane in lanes:
        lane.start()
    if scopes:
        threading.Thread(target=_keep_fresh, args=(context, scopes), name="fresh", daemon=True).start()
    else:
        threading.Thread(target=_warm, args=(settings,), name="warm", daemon=True).start()
    threading.Thread(target=_tend, args=(context, stopping), name="tend", daemon=True).start()
    stopping.wait()
    if not stop_all(context, lanes, STOP_SECONDS):
        tell_line(ProgressLine("a run did not stop in time and was ended; what of it is not published is done again"))
    # The lock is released by the end of this process: until then, its jobs are not those of one that ended.
    return 0


def _listen(stopping: threading.Event, drain: Sequence[Callable[[], None]]) -> None:
    """Follow the orders of the service; its end ends this process, too."""
    for line in sys.stdin:
        if line.strip() == DRAIN:
            for each in drain:
                each()
    stopping.set()


def _hold(lock: FileLock, stopping: threading.Event) -> bool:
    """Wait until no other process carries out the jobs of this folder; return False if told to stop before."""
    told = False
    while not stopping.is_set():
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not told:
                tell_line(ProgressLine("another service here carries out the jobs; this one does as soon as that ends"))
                told = True
            stopping.wait(_LOOK_SECONDS)
            continue
        return True
    return False


def _recover(context: JobContext) -> None:
    if number := context.store.recover():
        tell_line(ProgressLine(f"carried out again, because their process ended: {counted(number, 'job')}"))


def _tend(context: JobContext, stopping: threading.Event) -> None:
    while not stopping.wait(_TEND_SECONDS):
        tend(context)


def tend(context: JobContext) -> None:
    """Delete what cannot be undone any more, and take up jobs whose process ended a moment after this one began."""
    try:
        _recover(context)
        SetAside(context.state).sweep(lambda: changes_in_use(context.store))
    except (StorageError, OSError) as error:
        log.warning("the queue of jobs is tended later: %s", error)


def _warm(settings: Settings) -> None:
    """Start what the first job would wait for: extraction processes are forked from a server, models are loaded."""
    try:
        pool = WorkerPool(settings.extraction.model_copy(update={"workers": 1}), settings.chunking, None)
        try:
            pool.result(pool.prepare(_WARM))
        finally:
            pool.close()
        for model in models_of(settings, [settings.corpus.namespace]).values():
            if not model.id.startswith("openai:"):
                model.open().embed(["warm"])
    except (ParquetryError, OSError) as error:
        log.warning("the first job may fail: %s", error)


def _keep_fresh(context: JobContext, scopes: Sequence[Scope]) -> None:
    """Keep the sources fresh that the command line names."""
    settings = context.settings
    uploads = root_of_uploads(settings)
    ours = [context.state, *([local_path(uploads)] if is_local(uploads) else [])]
    remote = [scope for scope in scopes if not is_local(scope.settings.uri)]
    for each in watched_of(settings, scopes):
        say(f"Watching {each.place} ({each.scope.name}).")
    for scope in remote:
        say(f"Looking at {scope.name} every {REMOTE_SECONDS / 60:.0f} minutes.")

    def refresh(due: Sequence[Scope]) -> str:
        with context.one_run, context.runs.engine() as engine:
            return refresh_scopes(settings, due, lambda: engine, shown, tell_line)

    def kept() -> None:
        Freshness(
            settings, watched_of(settings, scopes, ours), remote, refresh, tell_line, context.runs.stopping
        ).keep()

    while not context.runs.stopping.is_set():
        try:
            kept()
        except Cancelled:
            return
        except Exception as error:
            # The edge of a refresh: a thread that ended would leave the sources as they are, without a word.
            if not isinstance(error, ParquetryError | OSError):
                log.exception("the refresh of the sources ended")
            told = failure_of(error).detail
            tell_line(ProgressLine(f"folders are not watched for {FRESH_AGAIN_SECONDS:g} s: {told}", is_problem=True))
            context.runs.stopping.wait(FRESH_AGAIN_SECONDS)
