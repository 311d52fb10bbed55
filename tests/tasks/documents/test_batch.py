"""One batch: every document gets a row, and a failure affects only its own document."""

from dataclasses import replace

import psutil
import pytest

from parquetry.errors import DiskFull, RefusedError, SettingsError, StorageError, TransientError
from parquetry.ids import document_id
from parquetry.planning.batches import Batch
from parquetry.planning.diff import Change
from parquetry.planning.rows import new_stamp
from parquetry.sources.registry import open_source, scopes_of
from parquetry.storage.lake.current import CurrentRows, current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents import run as document_run
from parquetry.tasks.documents.batch import document_batches, failed_batch, process_batch
from parquetry.tasks.documents.models import Model, fingerprints_of
from parquetry.tasks.documents.plan import check_refresh_budget, plan_refresh
from parquetry.tasks.documents.run import DocumentRun
from parquetry.tasks.engine import fork_server
from parquetry.tasks.engine.base import ATTEMPTS, Cancelled, DirectEngine
from tests.tasks.documents.scripted import ScriptedEmbedder


class ScriptedRun(DocumentRun):
    """A run with a scripted model that never sleeps."""

    model: ScriptedEmbedder
    pauses: list[float]

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.check_cancelled()


@pytest.fixture
def bench(workshop):
    opened = []

    def start(model=None):
        settings = workshop.settings
        lake = Lake(settings.corpus.root, create=True)
        scopes = scopes_of(settings, ())
        sources = {(scope.namespace, scope.name): open_source(scope, settings.corpus.root) for scope in scopes}
        scripted = model or ScriptedEmbedder()
        models = {"default": Model(scripted.id, fingerprints_of(settings, scripted.id), lambda: scripted)}
        run = ScriptedRun(settings, new_stamp(), lake, lake.snapshot(), sources, models)
        run.model, run.pauses = scripted, []
        opened.append(run)
        current = CurrentRows(run.base)
        planned = plan_refresh(
            settings, [(scope, sources[scope.namespace, scope.name]) for scope in scopes], current, models
        )
        work = tuple(change for change in planned.changes if change.effort in ("extract", "rechunk"))
        return run, Batch(0, work)

    workshop.start = start
    yield workshop
    for run in opened:
        run.__exit__()


def publish(run, report):
    run.lake.register(report.shards, run.stamp.run_id)
    run.lake.publish(run.base, report.rows, run.stamp.run_id)


def by_path(report):
    return {row.path: row for row in report.rows}


def workers():
    """Return the extraction processes of this process: children of the server that forks them."""
    servers = psutil.Process().children()
    return {worker.pid for server in servers for worker in server.children()}


def test_every_document_has_a_row_good_or_not(bench):
    bench.write("good.md", "# Title\n\nText.")
    bench.write("empty.txt", "")
    bench.write("broken.docx", b"PK\x03\x04 nothing more")
    bench.write("vanished.md", "Soon gone.")
    run, batch = bench.start()
    (bench.folder / "vanished.md").unlink()
    report = process_batch(batch, run)
    found = {
        path: (row.status, (row.error or "").partition(":")[0], row.transient) for path, row in by_path(report).items()
    }
    assert found == {
        "good.md": ("indexed", "", False),
        "empty.txt": ("skipped", "extract/empty", False),
        "broken.docx": ("failed", "extract/damaged", False),
        "vanished.md": ("failed", "fetch/vanished", True),
    }
    assert {shard.table: shard.rows for shard in report.shards} == {"texts": 1, "chunks": 1}
    assert (report.work.chunks_written, report.work.chunks_embedded, report.work.tokens) == (1, 1, 10)
    assert report.work.cost_usd == pytest.approx(10 * 2.0 / 1e6)
    assert run.lake.snapshot().version == 0


def test_batch_without_anything_good_writes_no_shard_and_asks_no_model(bench):
    bench.write("empty.txt", "")
    run, batch = bench.start()
    report = process_batch(batch, run)
    assert (report.shards, run.model.asked, report.work.chunks_written) == ((), [], 0)


def test_document_too_large_is_not_read(bench):
    bench.sections["extraction"] = {"workers": 1, "max_bytes": 10}
    bench.write("large.md", "x" * 11)
    run, batch = bench.start()
    report = process_batch(batch, run)
    assert by_path(report)["large.md"].error == ("fetch/too-large: has 11 bytes, more than 10 (extraction.max_bytes)")
    assert report.work.bytes_read == 0


def test_document_that_was_too_large_is_read_once_the_limit_lets_it(bench):
    bench.sections["extraction"] = {"workers": 1, "max_bytes": 10}
    bench.write("large.md", "x" * 11)
    run, batch = bench.start()
    publish(run, process_batch(batch, run))
    assert bench.start()[1].changes == ()
    bench.sections["extraction"] = {"workers": 1, "max_bytes": 11}
    assert [change.effort for change in bench.start()[1].changes] == ["extract"]


def test_chunk_that_the_model_refuses_has_no_vector_and_is_told(bench):
    bench.write("a.md", "Refused text.")
    model = ScriptedEmbedder()
    model.refuses = ("Refused text.",)
    run, batch = bench.start(model)
    report = process_batch(batch, run)
    assert by_path(report)["a.md"].status == "indexed"
    (note,) = report.notes
    assert (note.uri[-4:], note.stage) == ("a.md", "embed")
    assert note.text.startswith("a chunk has no vector: too-long: is too long")
    publish(run, report)
    with bench.reader().connection as connection:
        assert connection.execute("SELECT text, vector FROM chunks").fetchall() == [("Refused text.", None)]
        found = connection.execute("SELECT filename, stage, note, revision, run_id FROM notes").fetchall()
        assert found == [("a.md", "embed", note.text, note.revision, run.stamp.run_id)]


def test_same_text_in_two_documents_is_embedded_once(bench):
    bench.write("a.md", "The same text.")
    bench.write("b.txt", "The same text.")
    run, batch = bench.start()
    report = process_batch(batch, run)
    assert run.model.asked == ["The same text."]
    assert (report.work.chunks_written, report.work.chunks_embedded, report.work.chunks_reused) == (2, 1, 1)


def test_changed_chunking_takes_the_stored_text_and_not_the_source(bench):
    bench.write("a.md", "One sentence here. " * 40)
    run, batch = bench.start()
    publish(run, process_batch(batch, run))
    bench.sections["chunking"] = {"size": 200, "overlap": 20}
    run, batch = bench.start()
    (bench.folder / "a.md").unlink()
    assert [change.effort for change in batch.changes] == ["rechunk"]
    report = process_batch(batch, run)
    assert by_path(report)["a.md"].status == "indexed"
    assert by_path(report)["a.md"].chunks > 3
    assert report.work.bytes_read == 0


def test_moved_document_that_now_fails_leaves_its_old_place(bench):
    bench.write("a.md", "Some text.")
    run, batch = bench.start()
    publish(run, process_batch(batch, run))
    (bench.folder / "a.md").rename(bench.folder / "b.md")
    bench.sections["extraction"] = {"workers": 1, "max_bytes": 3}
    run, _ = bench.start()
    (old,) = current_rows(run.base)
    (item,) = run.sources["default", "docs"].scan("")
    moved = Change("moved", "extract", "", document_id("default", "docs", "b.md"), "default", "docs", item, None, old)
    rows = {(row.path, row.removed): row.status for row in process_batch(Batch(0, (moved,)), run).rows}
    assert rows == {("b.md", False): "skipped", ("a.md", True): "indexed"}
    rows = {(row.path, row.removed): row.status for row in failed_batch(Batch(0, (moved,)), OSError(5, "x"), run).rows}
    assert rows == {("b.md", False): "failed", ("a.md", True): "indexed"}


@pytest.mark.parametrize("error", [TransientError("unreachable", "no answer"), KeyError("data"), OSError(5, "I/O")])
def test_batch_that_failed_as_a_whole_keeps_last_good_revisions_and_is_tried_again(bench, error):
    bench.write("a.md", "Some text.")
    run, batch = bench.start()
    publish(run, process_batch(batch, run))
    bench.write("a.md", "Other text.")
    run, batch = bench.start()
    (row,) = failed_batch(batch, error, run).rows
    (before,) = current_rows(run.base)
    assert (row.status, row.transient, row.revision) == ("failed", True, before.revision)
    assert row.error.startswith("store/")
    run.lake.publish(run.base, [row], run.stamp.run_id)
    _, again = bench.start()
    assert [change.effort for change in again.changes] == ["extract"]


@pytest.mark.parametrize("error", [SettingsError("no key"), StorageError("disk")])
def test_what_concerns_the_whole_run_is_raised(bench, error):
    run, batch = bench.start()
    with pytest.raises(type(error)):
        failed_batch(batch, error, run)


def test_full_disk_ends_the_run_by_its_name(bench):
    run, batch = bench.start()
    with pytest.raises(DiskFull, match="no space left on device: x; nothing was published"):
        failed_batch(batch, OSError(28, "No space left on device", "x"), run)


# --- the pool that runs batches


def test_failure_that_may_pass_is_tried_again_with_pauses(bench):
    bench.write("a.md", "Some text.")
    model = ScriptedEmbedder()
    model.failures = [TransientError("rate-limited", "slow down"), TransientError("unreachable", "no answer")]
    run, batch = bench.start(model)
    (report,) = DirectEngine().batches([batch], document_batches(run))
    assert by_path(report)["a.md"].status == "indexed"
    assert len(run.pauses) == 2


def test_failure_that_does_not_pass_fails_the_batch_and_no_other(bench):
    bench.write("a.md", "Some text.")
    bench.write("b.md", "Other text.")
    model = ScriptedEmbedder()
    model.failures = [TransientError("unreachable", "no answer")] * ATTEMPTS
    run, whole = bench.start(model)
    batches = [Batch(number, (change,)) for number, change in enumerate(whole.changes)]
    run.settings = run.settings.model_copy(update={"refresh": run.settings.refresh.model_copy(update={"workers": 1})})
    reports = list(DirectEngine().batches(batches, document_batches(run)))
    assert sorted(row.status for report in reports for row in report.rows) == ["failed", "indexed"]
    assert len(run.pauses) == ATTEMPTS - 1


def test_settings_error_stops_the_run_and_the_batches_that_wait(bench):
    for number in range(6):
        bench.write(f"{number}.md", f"Text number {number}.")
    model = ScriptedEmbedder()
    model.failures = [SettingsError("the key is not valid")] * 6
    run, whole = bench.start(model)
    batches = [Batch(number, (change,)) for number, change in enumerate(whole.changes)]
    with pytest.raises(SettingsError, match="the key is not valid"):
        list(DirectEngine().batches(batches, document_batches(run)))
    assert run.cancelled.is_set()
    assert model.asked == []


def test_cancelled_run_stops_between_documents(bench):
    bench.write("a.md", "Some text.")
    run, batch = bench.start()
    run.cancelled.set()
    with pytest.raises(Cancelled, match="was cancelled; nothing was published"):
        list(DirectEngine().batches([batch], document_batches(run)))


@pytest.mark.parametrize(("budget", "refused"), [(None, False), (1.0, False), (0.0001, True), (0.0, True)])
def test_budget_stops_before_anything_is_spent(bench, budget, refused):
    bench.write("a.md", "x" * 10_000)
    settings = bench.settings
    run, _ = bench.start()
    (scope,) = scopes_of(settings, ())
    planned = plan_refresh(settings, [(scope, run.sources["default", "docs"])], CurrentRows(None), run.models)
    planned = replace(planned, estimate=replace(planned.estimate, expected_usd=0.01))
    if refused:
        with pytest.raises(RefusedError, match=r"would cost about \$0.0100 .*refresh.budget_usd"):
            check_refresh_budget(planned, budget)
    else:
        check_refresh_budget(planned, budget)


@pytest.mark.parametrize("is_ours", [True, False], ids=["command", "library"])
def test_command_ends_the_server_of_its_extraction_processes_and_a_library_does_not(bench, monkeypatch, is_ours):
    """A program that uses the library may have processes of its own from that server."""
    ended = []
    monkeypatch.setattr(document_run, "owns_process", lambda: is_ours)
    monkeypatch.setattr(fork_server, "end_fork_server", lambda: ended.append(1))
    bench.write("a.md", "First.")
    run, _ = bench.start()
    run.give_memory_back()
    assert len(ended) == is_ours


def test_run_that_gave_its_memory_back_has_no_processes_and_goes_on_when_asked(bench, monkeypatch):
    bench.write("a.md", "First.")
    run, batch = bench.start()
    before = workers()
    first = process_batch(batch, run)
    assert workers() - before
    sources = []
    monkeypatch.setattr(run.fetching, "give_memory_back", lambda: sources.append("have given it back"))
    assert run.reading._read
    run.give_memory_back()
    assert not workers() - before
    assert (sources, run.reading._read) == (["have given it back"], set())
    assert (run._vectors, run._stored) == ({}, None)
    assert [row.status for row in first.rows] == ["indexed"]
    publish(run, first)
    again = process_batch(batch, run)
    assert (again.work.chunks_embedded, again.work.chunks_reused) == (0, 1)
