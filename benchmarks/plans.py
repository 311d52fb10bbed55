"""Cost of a plan over very many documents: time and memory if all or none are new, some changed, or settings did.

python -m benchmarks.plans [--documents 100000 1000000] [--steps unchanged]

The listing is generated for a corpus with as many rows, so that only the plan itself is measured. Each plan runs in a
separate process. `listing` is the time that it takes to generate the listing alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

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
from parquetry.storage.lake import schema
from parquetry.storage.lake.current import CurrentRows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.plan import plan_refresh

PACKAGES = ("parquetry", "deltalake", "duckdb", "numpy")
STEPS = ("new", "unchanged", "ten changed", "one named", "settings changed", "listing")
_AT_A_TIME = 1_000_000
"""rows per publish"""
_GROUP = 8192
"""rows per row group"""
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

    def look(self, path: str) -> Item | None:
        found = listed(int(path[-11:-4]))
        return found if found.path == path else None

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
        with tempfile.TemporaryDirectory(prefix="plans-benchmark-", dir=options.scratch) as made:
            scratch = options.corpus or Path(made)
            if not (scratch / "corpus").exists():
                publish(documents, scratch)
            for step in options.steps:
                wait_until_idle(options.max_load)
                steps.append({"documents": documents, "step": step, **_measured(step, documents, scratch)})
                print(steps[-1], flush=True)
    result = {"conditions": conditions(PACKAGES), "steps": steps}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def listed(number: int) -> Item:
    """Return a document as the source lists it."""
    path = f"{number // 1000:04}/note-{number:07}.txt"
    return Item(path, f"generated://docs/{path}", 100, ids.content_hash(path.encode()), _THEN, Access())


def publish(documents: int, folder: Path) -> None:
    """Publish a corpus with every document as the source lists it."""
    lake = Lake(str(folder / "corpus"), create=True)
    for first in range(0, documents, _AT_A_TIME):
        stamp = RunStamp(f"run-{first}", _THEN)
        groups = (
            range(start, min(start + _GROUP, first + _AT_A_TIME, documents))
            for start in range(first, min(first + _AT_A_TIME, documents), _GROUP)
        )

        def parts(
            numbers: Mapping[str, int], groups: Iterator[range] = groups, stamp: RunStamp = stamp
        ) -> Iterator[pa.Table]:
            return (_rows(each, stamp, numbers["default"]) for each in groups)

        lake.publish_table(lake.snapshot(), {"default"}, parts, stamp.run_id)


def _rows(numbers: range, stamp: RunStamp, sequence: int) -> pa.Table:
    """Return rows as `schema.documents_table` makes them, in a tenth of the time: most of their values are the same."""
    like = schema.documents_table([replace(_row(listed(numbers[0]), stamp), sequence=sequence)])
    listing = [listed(number) for number in numbers]
    identities = [ids.document_id("default", "docs", item.path) for item in listing]
    own = {
        "document_id": identities,
        "path": [item.path for item in listing],
        "uri": [item.uri for item in listing],
        "filename": [item.path.rpartition("/")[2] for item in listing],
        "title": [f"A note of {item.path}" for item in listing],
        "etag": [item.etag for item in listing],
        "content_hash": [item.etag for item in listing],
        "revision": [ids.revision(identity, stamp.run_id) for identity in identities],
    }
    same = pa.array([0] * len(numbers))
    columns = [
        pa.array(own[column.name], column.type) if column.name in own else like[column.name].combine_chunks().take(same)
        for column in like.schema
    ]
    return pa.Table.from_arrays(columns, schema=like.schema)


def plan(step: str, documents: int, folder: Path) -> dict[str, Any]:
    """Plan once; return the planned work and the duration."""
    snapshot = Lake(str(folder / "corpus")).snapshot() if step != "new" else None
    source = Generated(documents, 10 if step == "ten changed" else 0)
    named = frozenset((listed(documents // 2).path,)) if step == "one named" else frozenset[str]()
    scope = replace(_SCOPE, paths=named)
    prints = replace(_PRINTS, chunking="c2") if step == "settings changed" else _PRINTS
    models = {"default": Model("m@1", prints, _free)}
    started = time.perf_counter()
    before = time.process_time()
    if step == "listing":
        counts = {"scanned": sum(1 for _ in source.scan(""))}
    else:
        planned = plan_refresh(Settings(), [(scope, source)], CurrentRows(snapshot, {"default"}), models)
        counts = {name: count for name, count in count_documents(planned.sources).as_dict().items() if count}
    seconds, processor = time.perf_counter() - started, time.process_time() - before
    return {"seconds": round(seconds, 3), "processor_seconds": round(processor, 3), "counts": counts}


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
    return {
        **told,
        "peak_pss_mb": measured.peak_pss_mb,
        "peak_rss_mb": measured.peak_rss_mb,
        "load_before": measured.load_before,
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description="What a plan costs.")
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--corpus", type=Path, help="folder with a corpus of an earlier call, of --documents N")
    parser.add_argument("--name", default="plans", help="name of the result")
    parser.add_argument("--step", choices=STEPS, help="plan once in this process; --scratch holds the corpus")
    parser.add_argument("--max-load", type=float, help="wait before each plan until the load average is below this")
    parser.add_argument("--scratch", type=Path, help="where the corpora go")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
