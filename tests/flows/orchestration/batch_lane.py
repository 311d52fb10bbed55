"""Texts of a run on two workers, sent through a batch API and received from it by these."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from parquetry.errors import RunSuspended
from parquetry.planning.report import RunReport
from tests.flows.orchestration.corpora import content_of
from tests.flows.orchestration.embedding_service import PATIENCE
from tests.flows.pipelines.batch_workshop import MOST, TEXTS, age, check_all_is_there
from tests.servers.batch_server import BatchServer
from tests.workshop import Workshop


def sent(server: BatchServer) -> Counter[str]:
    return Counter(line["body"]["input"] for batch in server.batches for line in batch.lines)


def check_lane(workshop: Workshop, server: BatchServer, run: Callable[[], RunReport], place: Path) -> None:
    """Check that both workers send texts, that each is paid for once, and that the corpus is that of threads.

    Args:
        workshop: six documents.
        server: the batch API.
        run: refreshes the corpus with two workers and two documents in a batch.
        place: folder for a corpus made by threads.
    """
    uploads, together = [], threading.Event()

    def meet(method: str, path: str) -> None:
        """Let no batch be sent before both workers send one."""
        if (method, path) == ("POST", "/v1/files"):
            uploads.append(path)
            if len(uploads) == 2:
                together.set()
            server._lock.release()
            together.wait(PATIENCE)
            server._lock.acquire()

    server.gate = meet
    first = run()
    assert isinstance(first.error, RunSuspended)
    assert together.is_set(), "one worker did everything"
    assert len(uploads) == 3, "one batch for each order"
    assert first.suspended[0].startswith("6 documents wait for 3 batches of 6 requests")
    assert sorted(first.batches) == [f"batch {number} sent: 2 texts, at most ${2 * MOST:.4f}" for number in (1, 2, 3)]
    assert sent(server) == Counter(TEXTS)
    server.complete()
    second = run()
    assert (second.error, second.documents.added, server.ordinary) == (None, 6, [])
    assert sum(cost.tokens for cost in second.costs) == sum(len(text.split()) for text in TEXTS)
    check_all_is_there(workshop, server)
    threads = Workshop(place)
    threads.sections |= {**workshop.sections, "run": {}, "batch_api": {}}
    threads.folder = workshop.folder
    threads.refresh()
    assert content_of(workshop.settings.corpus.root) == content_of(threads.settings.corpus.root)


def check_killed_lane(
    workshop: Workshop, server: BatchServer, run: Callable[[], RunReport], kill: Callable[[], None], at: tuple[str, str]
) -> None:
    """Check that a worker that is killed buys nothing twice.

    Args:
        workshop: six documents.
        server: the batch API, which carries out the request.
        run: refreshes the corpus with one worker.
        kill: kills the worker.
        at: method and a part of the path of the request in which it is killed.
    """
    killed = []

    def kill_once(method: str, path: str) -> None:
        if not killed and method == at[0] and at[1] in path:
            killed.append(path)
            kill()

    workshop.sections["batch_api"] |= {"wait_minutes": 0.2, "poll_seconds": 0.05}
    server.after, server.ends_at_once = kill_once, True
    reports = [run()]
    assert killed
    while reports[-1].error is not None:
        assert len(reports) < 4, reports[-1]
        age(workshop)
        reports.append(run())
    check_all_is_there(workshop, server)
    assert (sent(server), server.ordinary) == (Counter(TEXTS), [])
    tokens = sum(cost.tokens for report in reports for cost in report.costs)
    assert tokens == sum(len(text.split()) for text in TEXTS), "the cost is counted once"
