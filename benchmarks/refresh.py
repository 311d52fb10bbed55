"""Cost of refreshing a folder of PDFs: everything new, nothing changed, one document changed.

    python -m benchmarks.refresh FOLDER [--before CHECKOUT] [--cocoindex-python PYTHON] [--llamaindex-python PYTHON]

Each repetition starts from scratch with a copy of the folder, and contestants alternate within it (A B, A B), so that
other load affects all of them. Every process is measured from start to end with all its children.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, wait_until_idle, write_result
from benchmarks.contestants import Contestant, Run, cocoindex, llamaindex, parquetry

STEPS = ("full", "unchanged", "one changed")
PACKAGES = ("parquetry", "pypdfium2", "pyarrow", "deltalake", "duckdb", "wordllama", "tokenizers", "numpy")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    contestants = [parquetry()]
    if options.before:
        contestants.append(parquetry(checkout=options.before.absolute()))
    if options.cocoindex_python:
        contestants.append(cocoindex(options.cocoindex_python))
    if options.llamaindex_python:
        contestants.append(llamaindex(options.llamaindex_python))
    documents = sorted(options.folder.rglob("*.pdf"))
    runs: dict[str, dict[str, list[Run]]] = {each.name: {step: [] for step in STEPS} for each in contestants}
    for repetition in range(options.repetitions):
        for contestant in contestants:
            with tempfile.TemporaryDirectory(prefix="refresh-benchmark-", dir=options.scratch) as scratch:
                for step, run in _steps(contestant, documents, Path(scratch), options):
                    runs[contestant.name][step].append(run)
                    print(f"{repetition + 1}: {contestant.name:<12} {step:<12} {_line(run)}", flush=True)
    result = {
        "conditions": conditions(PACKAGES),
        "documents": len(documents),
        "bytes": sum(document.stat().st_size for document in documents),
        "steps": {
            "full": "a folder never seen before",
            "unchanged": "the same command again",
            "one changed": "the document of median size is replaced by a copy with one more page of one sentence",
        },
        "summary": {name: {step: summary(found) for step, found in steps.items()} for name, steps in runs.items()},
        "runs": {
            name: {step: [_raw(run) for run in found] for step, found in steps.items()} for name, steps in runs.items()
        },
    }
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the median, minimum and maximum of each figure over the repetitions."""
    figures = {
        "wall_seconds": [run.measured.wall_seconds for run in runs],
        "work_seconds": [run.work_seconds for run in runs],
        "processor_seconds": [run.measured.processor_seconds for run in runs],
        "peak_pss_mb": [run.measured.peak_pss_mb for run in runs],
        "embedded": [run.embedded for run in runs],
        "load_before": [run.measured.load_before for run in runs],
    }
    return {
        name: {
            "median": round(statistics.median(values), 3),
            "min": round(min(values), 3),
            "max": round(max(values), 3),
        }
        for name, values in figures.items()
    }


def change(document: Path) -> None:
    """Replace a PDF by a copy with an additional page of one sentence."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ContentStream, DictionaryObject, NameObject

    writer = PdfWriter()
    writer.append(PdfReader(document))
    page = writer.add_blank_page(595, 842)
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    page[NameObject("/Resources")] = DictionaryObject(
        {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
    )
    content = ContentStream(None, writer)
    content.set_data(b"BT /F1 12 Tf 72 700 Td (This page was added after the first refresh of the folder.) Tj ET")
    page.replace_contents(content)
    changed = document.with_suffix(".changed")
    writer.write(changed)
    changed.replace(document)


def _steps(
    contestant: Contestant, documents: Sequence[Path], scratch: Path, options: argparse.Namespace
) -> Iterator[tuple[str, Run]]:
    folder, state = scratch / "documents", scratch / "state"
    state.mkdir()
    for document in documents:
        copy = folder / document.relative_to(options.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(document, copy)
    for step in STEPS:
        if step == "one changed":
            by_size = sorted(folder.rglob("*.pdf"), key=lambda file: (file.stat().st_size, file.name))
            change(by_size[len(by_size) // 2])
        if not wait_until_idle(options.max_load):
            print(f"the machine did not calm down below a load of {options.max_load}; measured all the same")
        yield step, contestant.refresh(folder, state)


def _line(run: Run) -> str:
    measured = run.measured
    return (
        f"{measured.wall_seconds:7.2f} s whole process, {run.work_seconds:7.2f} s of work, "
        f"{measured.processor_seconds:7.2f} s of processors, {measured.peak_pss_mb:6.0f} MB, "
        f"{run.embedded} chunks embedded (load before {measured.load_before})"
    )


def _raw(run: Run) -> dict[str, Any]:
    measured = asdict(run.measured)
    del measured["output"], measured["errors"], measured["exit_code"]
    return {**measured, "work_seconds": run.work_seconds, "embedded": run.embedded, "stages": run.stages}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.refresh", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="a folder of PDFs")
    parser.add_argument("--before", type=Path, help="checkout of another version, for the same environment")
    parser.add_argument("--cocoindex-python", type=Path, help="interpreter of an environment with cocoindex")
    parser.add_argument("--llamaindex-python", type=Path, help="interpreter of an environment with llama-index")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--max-load", type=float, help="wait before each run until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where copies of the folder and all indexes go")
    parser.add_argument("--name", default="refresh", help="of the result file")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
