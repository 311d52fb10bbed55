"""Every kind of damage is reported by name, and a healthy corpus has no findings."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquetry.model import Access
from parquetry.planning.rows import RunStamp
from parquetry.storage.entries.entries import last_rows
from parquetry.storage.entries.undoing import undo_decision
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.ledger import write_decisions
from parquetry.storage.lake.rewrite import restore_version
from parquetry.storage.maintenance.doctor import examine
from tests.commits_by_hand import rewrite_commit
from tests.records import NOW, failed, skipped
from tests.storage.notebook import ASH, ELM, OAK, Notebook, decision, entry

pytestmark = pytest.mark.slow


@pytest.fixture
def healthy(shelf):
    shelf.publish({"a.md": ["one", "größe 🙂", "three"], "sub/b.md": ["four"]})
    shelf.publish({"a.md": ["one", "2", "three"]})
    shelf.publish({"c.md": ["five"]}, vectors=[[0, 0, 0, 0]])
    rows = [failed("d.md"), skipped("e.md")]
    shelf.lake.publish(shelf.lake.snapshot(), rows, "run-x")
    shelf.lake.record({"run_id": "run-x"}, [])
    return shelf


def found(shelf, **options):
    """Return check -> (severity, count)."""
    checkup = examine(shelf.lake, **options)
    assert checkup.healthy == all(finding.severity == "note" for finding in checkup.findings)
    return {finding.check: (finding.severity, finding.count) for finding in checkup.findings}


def spoil(shelf, path="a.md", **fields):
    """Publish a row that is false."""
    (row,) = [each for each in shelf.rows() if each.path == path]
    shelf.lake.publish(shelf.lake.snapshot(), [replace(row, **fields)], "run-bad")


def test_healthy_corpus_has_no_findings(healthy):
    checkup = examine(healthy.lake)
    assert checkup.findings == ()
    assert checkup.healthy
    assert (checkup.version, checkup.documents, checkup.chunks, checkup.spans_checked) == (4, 5, 5, 3)


def test_empty_corpus_is_healthy(shelf):
    assert found(shelf) == {}


def test_all_spans_are_compared_and_those_of_a_sample_if_it_is_to_be_quick(healthy, monkeypatch):
    monkeypatch.setattr("parquetry.storage.maintenance.doctor.SAMPLE_DOCUMENTS", 2)
    assert examine(healthy.lake).spans_checked == 3
    assert examine(healthy.lake, quick=True).spans_checked == 2


@pytest.mark.parametrize("table", ["texts", "chunks", "documents", "runs"])
@pytest.mark.parametrize(("damage", "check"), [("gone", "missing-file"), ("cut", "damaged-file")])
def test_lost_or_damaged_file_is_named(healthy, table, damage, check):
    for file in sorted((healthy.root / table).glob("*.parquet"))[:1]:
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:-5])
    checkup = examine(healthy.lake)
    (finding,) = [each for each in checkup.findings if each.check == check]
    assert (finding.severity, finding.count) == ("problem", 1)
    assert f"files of {table}" in finding.detail
    assert ".parquet" in finding.detail


def test_file_damaged_behind_its_footer_is_reported(healthy):
    for file in (healthy.root / "chunks").glob("*.parquet"):
        content = file.read_bytes()
        file.write_bytes(content[:4] + b"\xff" * (len(content) // 2) + content[4 + len(content) // 2 :])
    assert not examine(healthy.lake).healthy


@pytest.mark.parametrize(
    ("fields", "checks"),
    [
        ({"revision": 12345}, {"missing-text", "chunk-count"}),
        ({"revision": 0}, {"indexed-without-revision"}),
        ({"chunks": 7}, {"chunk-count"}),
        ({"characters": 7}, {"counts"}),
        ({"tokens": 7}, {"counts"}),
        ({"embedder": "other@4"}, {"embedder", "two-embedders"}),
        ({"document_id": "00000000-0000-0000-0000-000000000000"}, {"identity"}),
    ],
)
def test_row_that_is_not_true_is_reported(healthy, fields, checks):
    spoil(healthy, **fields)
    assert found(healthy) == dict.fromkeys(checks, ("problem", 1))


def test_document_with_two_current_rows_is_reported(healthy):
    (row,) = [each for each in healthy.rows() if each.path == "a.md"]
    healthy.lake.publish(healthy.lake.snapshot(), [row, row], "run-bad")
    assert found(healthy)["two-current-rows"] == ("problem", 1)


def test_text_and_chunks_stored_twice_are_reported(shelf):
    rows, run = shelf.write({"a.md": ["one", "two"]})
    shelf.runs = 0
    (shelf.root / "chunks" / "run-1-00000.parquet").rename(shelf.root / "chunks" / "first.parquet")
    (shelf.root / "texts" / "run-1-00000.parquet").rename(shelf.root / "texts" / "first.parquet")
    shelf.write({"a.md": ["one", "two"]})
    for table in ("chunks", "texts"):
        log = shelf.root / table / "_delta_log" / "00000000000000000001.json"
        rewrite_commit(log, "run-1-00000.parquet", "first.parquet")
    shelf.lake.publish(shelf.lake.snapshot(), rows, run)
    found_ = found(shelf)
    assert {"repeated-text", "chunk-count", "chunk-order"} <= set(found_)


def test_chunks_that_are_not_the_text_at_their_place_are_reported(shelf, monkeypatch):
    write = shelf.revision

    def shifted(path, chunks, run, **fields):
        row, text, made = write(path, chunks, run, **fields)
        wrong = replace(made.chunks[1], start=made.chunks[1].start - 1, end=made.chunks[1].end - 1)
        return row, text, replace(made, chunks=[made.chunks[0], wrong])

    monkeypatch.setattr(shelf, "revision", shifted)
    shelf.publish({"a.md": ["größe 🙂", "two"]})
    checkup = examine(shelf.lake)
    assert [(each.check, each.count, each.detail) for each in checkup.findings] == [
        ("span", 1, "chunks are not the text at their place (1): a.md chunk 1")
    ]


@pytest.mark.parametrize("numbers", [(0, 1, 5), (1, 2, 3), (0, 0, 2)])
def test_chunks_that_are_not_numbered_in_order_are_reported(shelf, monkeypatch, numbers):
    write = shelf.revision

    def skipping(path, chunks, run, **fields):
        row, text, made = write(path, chunks, run, **fields)
        return row, text, replace(made, chunks=[replace(c, index=n) for c, n in zip(made.chunks, numbers, strict=True)])

    monkeypatch.setattr(shelf, "revision", skipping)
    shelf.publish({"a.md": ["one", "two", "three"]})
    assert found(shelf) == {"chunk-order": ("problem", 1)}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_vector_that_is_not_finite_is_reported(shelf, value):
    shelf.publish({"a.md": ["one", "two"]}, vectors=[[1, 2, 3, value], [1, 2, 3, 4]])
    assert found(shelf) == {"vector-value": ("problem", 1)}


def test_vector_of_another_length_than_its_model_makes_is_reported(shelf):
    rows, run = shelf.write({"a.md": ["one"]}, embedder="model@4")
    (file,) = (shelf.root / "chunks").glob("*.parquet")
    table = pq.read_table(file)
    vector = pa.array([[1.0, 2.0]], pa.list_(pa.float32()))
    pq.write_table(table.set_column(table.schema.get_field_index("vector"), "vector", vector), file)
    shelf.lake.publish(shelf.lake.snapshot(), rows, run)
    assert found(shelf, quick=True)["vector-dimension"] == ("problem", 1)


def test_what_crashes_and_strangers_leave_is_no_damage(healthy):
    healthy.write({"x.md": ["orphan"]}, register=False)
    (healthy.root / "chunks" / "run-9.unfinished").write_text("half")
    (healthy.root / "notes.txt").write_text("mine")
    (healthy.root / "texts" / "readme.md").write_text("mine")
    checkup = examine(healthy.lake)
    assert {each.check: (each.severity, each.count) for each in checkup.findings} == {
        "orphan": ("note", 2),
        "unfinished": ("note", 1),
        "unknown-file": ("note", 2),
    }
    assert checkup.healthy


# --- entries


@pytest.fixture
def learned(healthy):
    notebook = Notebook(healthy)
    notebook.learn(OAK, ELM)
    notebook.decide([decision(0, "merged", ASH, session="s-2", retires=(OAK.entry_id,))], [ASH])
    undo_decision(healthy.lake, notebook.ledger("decision_id")[-1][0], RunStamp("undo-1", NOW))
    restore_version(healthy.lake, healthy.lake.snapshot().version - 1, RunStamp("restore-1", NOW))
    return notebook


def test_entries_that_came_and_went_have_no_findings(learned):
    assert examine(learned.lake).findings == ()
    assert learned.live() == {ELM.text: 1, ASH.text: 2}


def publish_entry(notebook, entry_id, **fields):
    """Publish a row of an entry without a decision."""
    with notebook.shelf.connect() as connection:
        row = last_rows(connection, "default", [entry_id])[entry_id]
    notebook.lake.publish(notebook.lake.snapshot(), [replace(row, **fields)], "run-bad")


def test_entry_that_is_live_against_the_decisions_is_reported(learned):
    publish_entry(learned, OAK.entry_id, removed=False)
    assert found(learned.shelf) == {"entry-standing": ("problem", 1)}


def test_entry_that_is_gone_against_the_decisions_is_reported(learned):
    publish_entry(learned, ELM.entry_id, removed=True)
    assert found(learned.shelf) == {"entry-standing": ("problem", 1)}


def test_entry_that_nobody_made_is_reported(learned):
    stranger = entry("The yew is evergreen.")
    publish_entry(learned, ELM.entry_id, document_id=stranger.entry_id, path="entry:x")
    assert found(learned.shelf) == {"entry-not-made": ("problem", 1), "entry-standing": ("problem", 1)}


def test_entry_whose_scope_is_not_that_of_its_id_is_reported(learned):
    publish_entry(learned, ELM.entry_id, access=Access("individual", user_id="eve"))
    assert found(learned.shelf) == {"identity": ("problem", 1)}


def test_decision_about_an_entry_that_never_was_is_reported(learned):
    strange = decision(0, "existing", ELM, session="s-9", run="run-bad", retires=("nobody",))
    row = replace(current_rows(learned.lake.snapshot(), what="knowledge")[0], run_id="run-bad")
    base = learned.lake.snapshot()
    learned.lake.publish(
        base,
        [row],
        "run-bad",
        lambda sequences: [write_decisions(base.layout, "bad.parquet", [strange], sequences, base.version)],
    )
    assert found(learned.shelf) == {"decision-about-nothing": ("problem", 1)}


def test_entry_whose_chunk_says_something_else_is_reported(learned):
    publish_entry(learned, ELM.entry_id, revision=revision_of(learned, ASH), chunks=1)
    told = found(learned.shelf)
    assert told["entry-text"] == ("problem", 1)


def revision_of(notebook, entry):
    with notebook.shelf.connect() as connection:
        return last_rows(connection, "default", [entry.entry_id])[entry.entry_id].revision
