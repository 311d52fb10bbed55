"""The benchmarks run and count correctly, on files written here; their measurements are not asserted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import candidates, embedder, fidelity, folders, orchestration_share, refresh, refresh_stages, search
from benchmarks.fidelity_sets import commonmark_examples, plain_html, plain_markdown
from benchmarks.orchestration import BATCHES, overhead
from benchmarks.process_tree import measure
from tests.files.pdf_writer import lines, write_pdf

pytestmark = pytest.mark.slow


@pytest.fixture
def pdfs(tmp_path: Path) -> Path:
    folder = tmp_path / "pdfs"
    folder.mkdir()
    for name in ("harbour", "crane", "shelf"):
        texts = [f"The {name} manual has {count} rules that nobody may forget." for count in range(40)]
        (folder / f"{name}.pdf").write_bytes(write_pdf([lines(72, 780, texts)]))
    return folder


def test_a_process_tree_is_measured_with_its_children(tmp_path: Path):
    child = "import time; held = bytearray(80_000_000); time.sleep(0.6); print('done')"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    measured = measure([sys.executable, "-c", parent], tmp_path)
    assert (measured.exit_code, measured.output) == (0, "done\n")
    assert measured.peak_rss_mb > 80


def test_share_of_prefect_is_what_it_adds_to_the_median_without_it():
    def runs(*wall: float) -> list[dict[str, float]]:
        return [{"wall_seconds": each, "processor_seconds": each / 10} for each in wall]

    added = orchestration_share.overhead(
        {
            "direct": runs(100, 120, 90),
            "on a running server": runs(104, 130, 91),
            "with a server of its own": runs(110),
            "with a server of its own, in a new home": runs(115),
        }
    )
    assert added["on a running server"]["wall_seconds"] == 4
    assert added["with a server of its own"] == {
        "wall_seconds": 10,
        "wall_share": 0.1,
        "processor_seconds": 1,
        "processor_share": 0.1,
    }


def test_refresh_embeds_everything_then_nothing_then_one_chunk(pdfs: Path, tmp_path: Path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    arguments = [str(pdfs), "--repetitions", "1", "--scratch", str(scratch), "--results", str(tmp_path / "results")]
    refresh.main(arguments)
    result = json.loads((tmp_path / "results" / "refresh.json").read_text("utf-8"))
    embedded = [result["summary"]["parquetry"][step]["embedded"]["median"] for step in refresh.STEPS]
    assert embedded[0] > 3
    assert embedded[1:] == [0, 1]
    assert not any(scratch.iterdir())


def test_processor_seconds_by_stage_add_up_to_the_total(pdfs: Path, tmp_path: Path):
    result = refresh_stages.main([str(pdfs), "--results", str(tmp_path)])
    stages = result["processor_seconds"]
    assert {"start and imports", "plan", "fetch", "embed", "store", "publish", "index", "extraction processes"} <= set(
        stages
    )
    assert result["total"] == pytest.approx(sum(stages.values()), abs=0.01)
    assert result["embedded"] > 0


def test_embedders_agree_on_the_chunks_of_a_folder(pdfs: Path, tmp_path: Path):
    result = embedder.main([str(pdfs), "--chunks", "4", "--repetitions", "1", "--results", str(tmp_path)])
    assert result["chunks"] == 4
    assert result["cosine_to_library_on_lower_case"] > 0.999


def test_overhead_of_prefect_is_told_apart_by_start_and_batch():
    few, many = BATCHES
    seconds = {
        few: {"direct": {"full": [2.0], "unchanged": [1.0]}, "prefect": {"full": [12.5], "unchanged": [11.0]}},
        many: {"direct": {"full": [3.0], "unchanged": [1.0]}, "prefect": {"full": [14.5], "unchanged": [11.0]}},
    }
    assert overhead(seconds, documents=11) == {"start_seconds": 10.0, "seconds_per_batch": 0.1}


def test_recall_counts_repetitions_and_order_counts_what_both_have():
    row = fidelity.compare("file", "one two two three", "three one two four")
    assert (row.recall, row.precision) == (0.75, 0.75)
    assert row.order == pytest.approx(2 / 3, abs=1e-3)
    assert (row.missing, row.surplus) == (("two",), ("four",))


def test_an_extraction_is_compared_without_its_markup(tmp_path: Path):
    folder = tmp_path / "csv-spectrum"
    for name in ("csvs", "json"):
        (folder / name).mkdir(parents=True)
    (folder / "csvs" / "crates.csv").write_text('crate,shelf\n7,"red, upper"\n8,blue\n', "utf-8")
    rows = [{"crate": "7", "shelf": "red, upper"}, {"crate": "8", "shelf": "blue"}]
    (folder / "json" / "crates.json").write_text(json.dumps(rows), "utf-8")
    result = fidelity.main([str(tmp_path), "--set", "csv-spectrum", "--results", str(tmp_path / "results")])
    assert result["summary"]["csv-spectrum"] == {
        "documents": 1, "refused": 0, "tokens": 7,
        "recall_of_tokens": 1.0, "recall": 1.0, "precision": 1.0, "order": 1.0,
    }  # fmt: skip


def test_a_set_that_is_not_there_has_no_documents(tmp_path: Path):
    result = fidelity.main([str(tmp_path), "--set", "markitdown", "--results", str(tmp_path)])
    assert result["summary"]["markitdown"]["documents"] == 0


def test_examples_of_a_specification_are_pairs_with_their_tabs():
    fence = "`" * 32
    assert list(commonmark_examples(f"text\n{fence} example\n→a\n.\n<pre>a</pre>\n{fence}\n")) == [
        ("\ta\n", "<pre>a</pre>\n")
    ]


def test_markup_is_removed_without_cutting_words():
    assert plain_html("a<em>b</em><p>c &lt;d&gt;</p><script>no</script>").split() == ["ab", "c", "<d>"]
    assert plain_markdown("# Crane\n\n| a | b |\n| --- | --- |\n| *1*2 | [x](http://y) |").split() == [
        "Crane", "a", "b", "12", "x",
    ]  # fmt: skip


def test_every_document_of_mixed_folders_is_counted_once_with_its_reason(pdfs: Path, tmp_path: Path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "empty.txt").write_bytes(b"")
    (notes / "broken.json").write_text('{"rule": ', "utf-8")
    result = folders.main([str(pdfs), str(notes), "--scratch", str(tmp_path), "--results", str(tmp_path / "results")])
    full, unchanged = result["steps"]["full"], result["steps"]["unchanged"]
    counts = full["documents"]
    assert (counts["scanned"], counts["added"], counts["skipped"], counts["failed"]) == (5, 3, 1, 1)
    assert full["reasons"] == {"skipped extract/empty": 1, "failed extract/damaged": 1}
    assert (full["exit_code"], unchanged["documents"]["unchanged"]) == (0, 3)
    assert full["peak_pss_mb"] > 50
    assert json.loads((tmp_path / "results" / "folders.json").read_text("utf-8"))["folders"] == ["pdfs", "notes"]


def test_a_search_benchmark_finds_the_right_chunks_and_is_not_measured_twice(tmp_path: Path):
    arguments = ["--sizes", "1000", "--scratch", str(tmp_path), "--results", str(tmp_path)]
    found = search.main(arguments)["synthetic 1000"]
    assert (found["corpus"]["chunks"], found["corpus"]["documents"]) == (1000, 100)
    for contestant, step in (("numpy", "query"), ("parquetry", "query"), ("parquetry", "memory")):
        rows = {row["what"]: row["recall@10"] for row in found["contestants"][contestant][step]["rows"]}
        assert [rows[f"vector{part}"] for part in ("", ", 40 % visible", ", 1 % visible")] == [1.0, 1.0, 1.0]
    assert found["contestants"]["parquetry"]["build"]["bytes"] > 100_000
    assert set(found["contestants"]["parquetry"]["refresh"]["refresh_seconds"]) == {"first", "next"}
    assert search.main(arguments) == json.loads((tmp_path / "search.json").read_text("utf-8"))["corpora"]


def test_a_peer_that_is_not_installed_is_left_out_with_its_reason(tmp_path: Path):
    result = search.run_step(search.Step("faiss", "query", [sys.executable, "-c", "import no_such_peer"]), 10, 60)
    assert result == {"left_out": "ended with 1: ModuleNotFoundError: No module named 'no_such_peer'"}


def test_a_process_that_takes_too_long_is_killed(tmp_path: Path):
    measured = measure([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, timeout_seconds=0.2)
    assert measured.exit_code == -9


def test_more_candidates_hold_more_of_the_truth_and_all_of_them_hold_all(tmp_path: Path):
    recall = candidates.main(["--chunks", "2000", "--results", str(tmp_path)])["recall"]
    for found in recall.values():
        at_hundred = [found[kept]["@100"] for kept in candidates.KEPT]
        assert at_hundred == sorted(at_hundred)
        assert (found[2000]["@10"], found[2000]["@100"]) == (1.0, 1.0)
    assert recall["large ones threefold"][100]["@100"] > recall["all bits"][100]["@100"]
    assert recall["large ones only"][100]["@100"] > recall["all bits, not rotated"][100]["@100"]
