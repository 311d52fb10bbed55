"""One run per namespace at a time, for all ways of starting it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from parquetry.flows.orchestration.namespace_lock import limit_name
from parquetry.flows.pipelines.documents import Request
from parquetry.flows.refresh import run_request
from parquetry.serving.cli.progress import Observer
from parquetry.storage.files.layout import layout_of


class Diary(Observer):
    """Record when a run plans and publishes, and optionally hold it up in between."""

    def __init__(self, name: str, events: list[str], hold: threading.Event | None = None) -> None:
        self.name, self.events, self.hold = name, events, hold
        self.started = threading.Event()

    def planned(self, plan, batches) -> None:
        self.events.append(f"{self.name} planned")
        self.started.set()
        assert self.hold is None or self.hold.wait(60)

    def published(self, report) -> None:
        self.events.append(f"{self.name} published")


@pytest.fixture
def library(workshop):
    workshop.write("rule.md", "# Rule\n\nCount the boards.\n")
    return workshop


def test_second_run_of_a_namespace_waits_until_the_first_has_published(library, records, lines):
    events, waiting = [], threading.Event()
    lines.on_message = lambda message: waiting.set() if message.startswith("waiting for the run") else None
    first = Diary("first", events, hold=waiting)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(run_request, Request(library.settings), first)
        assert first.started.wait(60)
        two = threads.submit(run_request, Request(library.settings), Diary("second", events))
        assert one.result(60).documents.added == 1
        # It planned after the first had published, so it had nothing to do.
        assert two.result(60).documents.unchanged == 1
    assert events == ["first planned", "first published", "second planned", "second published"]
    limit = records.client.read_global_concurrency_limit_by_name(
        limit_name(layout_of(library.settings.corpus.root).root, "default")
    )
    assert (limit.limit, limit.active_slots) == (1, 0)


def test_run_of_another_namespace_does_not_wait(library, records, lines):
    events, release = [], threading.Event()
    first = Diary("first", events, hold=release)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(run_request, Request(library.settings), first)
        assert first.started.wait(60)
        library.sections["source"] = {"namespace": "hr"}
        two = threads.submit(run_request, Request(library.settings), Diary("second", events))
        assert two.result(60).documents.added == 1
        release.set()
        assert one.result(60).documents.added == 1
    assert events[-1] == "first published"
    assert not any(message.startswith("waiting") for message in lines.messages)


def test_failed_run_gives_its_namespace_free(library, records):
    (library.folder / "rule.md").unlink()
    library.folder.rmdir()
    for _ in range(2):
        with pytest.raises(Exception, match="docs"):
            run_request(Request(library.settings), Observer())
    library.folder.mkdir()
    library.write("rule.md", "# Rule\n\nCount the boards.\n")
    assert run_request(Request(library.settings), Observer()).documents.added == 1


def test_limit_that_an_operator_widened_is_left_alone(library, records):
    run_request(Request(library.settings), Observer())
    name = limit_name(layout_of(library.settings.corpus.root).root, "default")
    records.client.upsert_global_concurrency_limit_by_name(name, 3)
    run_request(Request(library.settings), Observer())
    assert records.client.read_global_concurrency_limit_by_name(name).limit == 3


def test_names_of_limits_tell_corpora_and_namespaces_apart():
    assert limit_name("/srv/kb", "hr") != limit_name("/mnt/kb", "hr") != limit_name("/mnt/kb", "it")
    assert limit_name("/srv/my kb&co", "hr").startswith("parquetry-my-kb-co-hr-")
