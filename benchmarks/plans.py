"""Cost of a plan over very many documents: time and memory if all are new, none changed, or ten changed.

python -m benchmarks.plans [--documents 100000 1000000]

The listing is generated for a corpus with as many rows, so that only the plan itself is measured. Each plan runs in a
separate process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, ROOT, conditions, wait_until_idle, write_result
from benchmarks.process_tree import measure
from parquetry import ids
from parquetry.embed.base import Embedder
from parquetry.model import Access, DocumentRow, Item
from parquetry.planning.fingerprint import Fingerprint, Fingerprints
from parquetry.planning.report import count_documents
from parquetry.planning.rows import RunStamp, blank_row
from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings
from parquetry.sources.registry import Scope
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.plan import plan_refresh

PACKAGES = ("parquetry", "deltalake", "duckdb", "numpy")
STEPS = ("new", "unchanged", "ten changed")
_AT_A_TIME = 50_000
"""rows per publish"""
_THEN = datetime(2031, 1, 1, tzinfo=UTC)
_SCOPE = Scope(SourceSettings(name="docs", uri="generated://docs"), "default", "")
_PRINTS = Fingerprints(lambda _: "e", "c", "m")


class Generated:
    """Source of generated documents, of which the first `changed` differ from the published ones."""

    def __init__(self, documents: int, changed: int) -> None:
        self._documents, self._changed = documents, changed

    def scan(self, prefix: str) -> Iterator[Item]:
        for number in range(self._documents):
            found = listed(number)
            if found.path.startswith(prefix):
                yield replace(found, etag=f"{found.etag}-changed") if number < self._changed else found

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        raise AssertionError(f"a plan read {item.path}")


class Free:
    """Model without cost that embeds nothing."""

    price_per_million_tokens = 0.0


def main(arguments: Sequence[str] | None = None) -> dict[str, Any] | None:
    options = _options(arguments)
    if options.step:
        print(json.dumps(plan(options.step, options.documents[0], options.scratch)))
        return None
    steps = []
    for documents in options.documents:
        with tempfile.TemporaryDirectory(prefix="plans-benchmark-", dir=options.scratch) as scratch:
            publish(documents, Path(scratch))
            for step in STEPS:
                wait_until_idle(options.max_load)
                steps.append({"documents": documents, "step": step, **_measured(step, documents, Path(scratch))})
                print(steps[-1], flush=True)
    result = {"conditions": conditions(PACKAGES), "steps": steps}
    print(f"written to {write_result('plans', result, options.results)}")
    return result


def listed(number: int) -> Item:
    """Return a document as the source lists it."""
    path = f"{number // 1000:04}/note-{number:07}.txt"
    return Item(path, f"generated://docs/{path}", 100, ids.content_hash(path.encode()), _THEN, Access())


def publish(documents: int, folder: Path) -> None:
    """Publish a corpus with every document as the source lists it."""
    lake = Lake(str(folder / "corpus"), create=True)
    for first in range(0, documents, _AT_A_TIME):
        numbers = range(first, min(documents, first + _AT_A_TIME))
        stamp = RunStamp(f"run-{first}", _THEN)
        lake.publish(lake.snapshot(), [_row(listed(number), stamp) for number in numbers], stamp.run_id)


def plan(step: str, documents: int, folder: Path) -> dict[str, Any]:
    """Plan once; return the planned work and the duration."""
    snapshot = Lake(str(folder / "corpus")).snapshot() if step != "new" else None
    source = Generated(documents, 10 if step == "ten changed" else 0)
    models = {"default": Model("m@1", _PRINTS, _free)}
    started = time.perf_counter()
    planned = plan_refresh(Settings(), [(_SCOPE, source)], CurrentRows(snapshot, {"default"}), models)
    seconds = time.perf_counter() - started
    return {"seconds": round(seconds, 3), "counts": count_documents(planned.sources).as_dict()}


def _free() -> Embedder:
    free: Any = Free()
    return free


def _row(item: Item, stamp: RunStamp) -> DocumentRow:
    identity = ids.document_id("default", "docs", item.path)
    return replace(
        blank_row(stamp),
        document_id=identity,
        namespace="default",
        source="docs",
        path=item.path,
        uri=item.uri,
        filename=item.path.rpartition("/")[2],
        title=f"A note of {item.path}",
        media_type="text/plain",
        size=item.size,
        etag=item.etag,
        modified_at=item.modified_at,
        content_hash=item.etag,
        revision=ids.revision(identity, stamp.run_id),
        fingerprint=str(Fingerprint("e", "c", "m")),
        extractor="text/1",
        embedder="m@1",
        characters=item.size,
        chunks=1,
        tokens=25,
    )


def _measured(step: str, documents: int, scratch: Path) -> dict[str, Any]:
    given = ["--step", step, "--documents", str(documents), "--scratch", str(scratch)]
    measured = measure([sys.executable, "-m", "benchmarks.plans", *given], ROOT)
    if measured.exit_code:
        raise RuntimeError(f"exit {measured.exit_code}: {measured.errors}")
    told = json.loads(measured.output)
    return {**told, "peak_pss_mb": measured.peak_pss_mb, "load_before": measured.load_before}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description="What a plan costs.")
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--step", choices=STEPS, help="plan once in this process; --scratch holds the corpus")
    parser.add_argument("--max-load", type=float, help="wait before each plan until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where the corpora go")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
