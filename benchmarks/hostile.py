"""Growth of time and output with the size of files built to exhaust their readers, by class.

python -m benchmarks.hostile
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.conditions import ROOT, conditions, write_result
from parquetry.chunking.chunker import Chunker
from parquetry.errors import DocumentError
from parquetry.extract.detect import detect
from parquetry.extract.registry import extract
from parquetry.garbage import collect_seldom
from parquetry.model import RawDocument
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.registry import read_transcripts
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.extraction import ExtractionSettings

PACKAGES = ("parquetry", "selectolax", "trafilatura", "lxml", "docutils", "markdown-it-py", "semantic-text-splitter")
MODULES = "tests/**/hostile_*.py"
"""modules with `CLASSES`: name -> function of a size in bytes -> content and file name"""
CHAT = "chat, "
"""prefix of the names of classes read as chat sessions"""
SIZES = (100_000, 1_000_000, 10_000_000)
BOUND = 12
"""maximum factor in seconds for 10 times the bytes"""
LEAST_SECONDS = 0.05
"""seconds below which times are not compared, because noise dominates"""
_MIB = 1024 * 1024

Hostile = Callable[[int], tuple[bytes, str]]
Read = Callable[[RawDocument, dict[str, Any]], None]
Rows = list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    classes = {name: build for name, build in all_classes().items() if any(part in name for part in options.only)}
    started = time.monotonic()
    found = dict(_measured(classes, options))
    measured = {name: found[name] for name in classes if name in found}
    told = [rows for rows in measured.values() if rows]
    result = {
        "conditions": conditions(PACKAGES),
        "seconds": round(time.monotonic() - started, 1),
        "limit_seconds": options.seconds,
        "at_once": options.jobs,
        "not_measured": len(classes) - len(measured),
        "over_the_bound": {name: grown for name, rows in measured.items() if (grown := growth(rows)) > BOUND},
        "not_finished": [name for name, rows in measured.items() if rows[-1]["outcome"] in ("timeout", "died")],
        "slowest_seconds": max((row["seconds"] for rows in told for row in rows), default=0.0),
        "most_characters_per_byte": max(
            # Of what is packed, the size asked for is that of the content.
            (row["characters"] / max(row["bytes"], row["size"]) for rows in told for row in rows),
            default=0.0,
        ),
        "classes": measured,
    }
    print(f"over the bound: {result['over_the_bound']}\nnot finished: {result['not_finished']}")
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _measured(
    classes: Mapping[str, Hostile], options: argparse.Namespace
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rows of each finished class; stop at Ctrl-C."""

    def rows_of(name: str) -> tuple[str, Rows]:
        return name, measure(classes[name], options.sizes, options.seconds, chat=name.startswith(CHAT))

    with ThreadPoolExecutor(options.jobs) as threads:
        try:
            for done in as_completed([threads.submit(rows_of, name) for name in classes]):
                name, rows = done.result()
                print(f"{name:<50} {_line(rows)}", flush=True)
                yield name, rows
        except KeyboardInterrupt:
            threads.shutdown(wait=False, cancel_futures=True)


def all_classes() -> dict[str, Hostile]:
    """Return the classes of all modules, by name."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in sorted(ROOT.glob(MODULES))]
    modules = [vars(import_module(name)) for name in names]
    return {name: build for module in modules for name, build in module.get("CLASSES", {}).items()}


def measure(build: Hostile, sizes: Sequence[int], seconds: float, *, chat: bool = False) -> Rows:
    """Read files of increasing size, each in a separate process, until one does not finish.

    Args:
        build: builds a file of a given size.
        sizes: sizes in bytes, increasing.
        seconds: CPU time limit of a process.
        chat: True for files of chat sessions.

    Returns:
        For each unpacked size: the bytes of the file, CPU seconds to detect, extract and
        chunk, characters, chunks (messages for chats), and the outcome: `indexed`, a rejection reason, the name of
        an error, `timeout` or `died`.
    """
    rows = []
    for size in sizes:
        rows.append(_isolated(build, size, seconds, _read_chats if chat else _read_document))
        if rows[-1]["outcome"] in ("timeout", "died"):
            break
    return rows


def growth(rows: Sequence[dict[str, Any]]) -> float:
    """Return the largest growth factor between sizes, for 10 times the bytes; 0 if all are too fast to compare."""
    factors = [
        after["seconds"] / before["seconds"] / (after["size"] / before["size"]) * 10
        for before, after in pairwise(rows)
        if before["seconds"] >= LEAST_SECONDS
    ]
    return round(max(factors, default=0.0), 1)


def _isolated(build: Hostile, size: int, seconds: float, read: Read) -> dict[str, Any]:
    # Forked, so that every process inherits the loaded libraries.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_limited, args=(build, size, seconds, read, sender))
    started = time.monotonic()
    process.start()
    sender.close()
    try:
        # Twice the CPU time, for busy machines.
        row: dict[str, Any] = receiver.recv() if receiver.poll(2 * seconds + 10) else {}
    except EOFError:
        row = {}
    if not row:
        process.kill()
    process.join()
    used = round(time.monotonic() - started, 3)
    outcome = "timeout" if used >= seconds else "died"
    return row or {"size": size, "bytes": size, "seconds": used, "characters": 0, "chunks": 0, "outcome": outcome}


def _limited(build: Hostile, size: int, seconds: float, read: Read, sender: Connection) -> None:
    # As in an extraction process.
    gc.freeze()
    collect_seldom()
    limit = ExtractionSettings().memory_mb * _MIB
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    cpu = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    content, name = build(size)
    row: dict[str, Any] = {"size": size, "bytes": len(content), "characters": 0, "chunks": 0}
    start = time.process_time()
    try:
        read(RawDocument(content, name), row)
        row["outcome"] = "indexed"
    except DocumentError as error:
        row["outcome"] = error.reason
    except Exception as error:  # noqa: BLE001 (a reader that fails otherwise is what is looked for)
        row["outcome"] = f"{type(error).__name__}: {error}"[:200]
    row["seconds"] = round(time.process_time() - start, 3)
    row["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sender.send(row)


def _read_document(document: RawDocument, row: dict[str, Any]) -> None:
    def spent(part: str) -> None:
        row.setdefault("seconds_of", {})[part] = round(time.process_time() - started, 3)

    started = time.process_time()
    row["media_type"] = detect(document.content, document.filename)
    spent("detect")
    started = time.process_time()
    extraction = extract(document, ExtractionSettings())
    spent("extract")
    row["characters"] = len(extraction.text)
    row["warnings"] = [warning[:200] for warning in extraction.warnings[:5]]
    started = time.process_time()
    row["chunks"] = len(Chunker(ChunkingSettings(), None).split(extraction.text, extraction.parts, extraction.headings))
    spent("chunk")


def _read_chats(document: RawDocument, row: dict[str, Any]) -> None:
    found = list(read_transcripts(document))
    messages = [message for one in found if isinstance(one, Transcript) for message in one.messages]
    row["characters"] = sum(len(message.text) for message in messages)
    row["chunks"] = len(messages)
    row["warnings"] = [f"{one.place}: {one.detail}"[:200] for one in found if isinstance(one, Unread)][:5]


def _line(rows: Sequence[dict[str, Any]]) -> str:
    shown = [f"{row['seconds']:>8.2f} s {row['characters']:>10,}" for row in rows]
    return " ".join(shown) + f"  x{growth(rows):<5g} {rows[-1]['outcome']}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], help="classes with any of these in their names")
    parser.add_argument("--name", default="hostile", help="of the file of results")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes, rising")
    parser.add_argument("--seconds", type=float, default=120, help="CPU time of one file")
    parser.add_argument("--jobs", type=int, default=1, help="files that are read at once")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
