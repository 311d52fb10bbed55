"""Step of our search benchmark: `python -m benchmarks.search_ours build|query|memory|refresh MATERIAL`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.search_rows import Asked
from benchmarks.peers.search_rows import row as result_row
from benchmarks.search_material import CALLERS, Material
from benchmarks.search_synthetic import change
from parquetry.settings.sections import SearchSettings
from parquetry.storage.database import Connection
from parquetry.storage.files.layout import layout_of
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import OpenIndex
from parquetry.storage.index.vector_memory import IndexMemory, VectorMemories
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Hit, Mode, Searcher

NEAREST = 10
CHANGED = 10
"""number of changed documents in a refresh"""


def main() -> None:
    step, folder = sys.argv[1], Path(sys.argv[2])
    steps: dict[str, Callable[[Material], None]] = {
        "build": _build,
        "query": _query,
        "memory": _memory,
        "refresh": _refresh,
    }
    steps[step](Material(folder))


def _index(material: Material) -> IndexFolder:
    return IndexFolder(layout_of(material.root), SearchSettings())


def _report(**facts: Any) -> None:
    json.dump(facts, sys.stdout)
    print()


def _build(material: Material) -> None:
    snapshot = material.snapshot()
    started = time.perf_counter()
    made = _index(material).refresh(snapshot)
    _report(build_seconds=round(time.perf_counter() - started, 2), bytes=made.path.stat().st_size)


def _refresh(material: Material) -> None:
    """Update the index after a publish of some changed documents, twice: the first update has to copy its file.

    A service brings its memory forward from the version before.
    """
    memories, seconds, memory_seconds = VectorMemories(), [], []
    with closing(_index(material).open(material.snapshot())) as opened:
        memories.of(opened)
    for _ in range(2):
        change(material, CHANGED, f"change-{time.time_ns():x}")
        snapshot = material.snapshot()
        started = time.perf_counter()
        _index(material).refresh(snapshot)
        seconds.append(round(time.perf_counter() - started, 3))
        with closing(_index(material).open(snapshot)) as opened:
            started = time.perf_counter()
            memories.of(opened)
            memory_seconds.append(round(time.perf_counter() - started, 3))
    _report(
        refresh_seconds={"first": seconds[0], "next": seconds[1]},
        memory_seconds={"first": memory_seconds[0], "next": memory_seconds[1]},
        documents_changed=CHANGED,
    )


def _query(material: Material) -> None:
    asked = Asked(str(material.folder))
    opened = _index(material).open(material.snapshot())
    questions = _Questions(material, asked, opened)
    try:
        questions.ask("vector", Filters(), "vector", "all")
        for share, caller in CALLERS.items():
            questions.ask(f"vector, {share} visible", Filters(caller=caller), "vector", share)
        questions.exact("vector, exact")
        for mode in ("text", "hybrid"):
            questions.ask(mode, Filters(), mode, None)
            for share, caller in CALLERS.items():
                questions.ask(f"{mode}, {share} visible", Filters(caller=caller), mode, None)
        asked.report(threads=os.cpu_count(), prepare_ms=questions.prepare, stages_p50_ms=questions.stages)
    finally:
        opened.close()


def _memory(material: Material) -> None:
    """Search as a long-lived process does, with the index in memory."""
    asked = Asked(str(material.folder))
    memories = VectorMemories()
    with closing(_index(material).open(material.snapshot())) as opened:
        started = time.perf_counter()
        memory = memories.of(opened)
        load = round(time.perf_counter() - started, 2)
        questions = _Questions(material, asked, opened, memory)
        modes: tuple[tuple[Mode, str | None], ...] = (("vector", "all"), ("text", None), ("hybrid", None))
        for mode, truth in modes:
            questions.ask(mode, Filters(), mode, truth)
            for share, caller in CALLERS.items():
                questions.ask(f"{mode}, {share} visible", Filters(caller=caller), mode, truth and share)
        asked.report(
            threads=os.cpu_count(),
            load_seconds=load,
            bytes=memory.bytes,
            prepare_ms=questions.prepare,
            stages_p50_ms=questions.stages,
        )


class _Questions:
    """Queries through the searcher behind every interface of the program; results are whole hits, not numbers."""

    def __init__(self, material: Material, asked: Asked, opened: OpenIndex, memory: IndexMemory | None = None) -> None:
        self._asked, self._opened, self._memory = asked, opened, memory
        self._embedder = material.facts["embedder"]
        self._texts = {query.tobytes(): text for query, text in zip(asked.queries, material.query_texts(), strict=True)}
        self._firsts: dict[str, int] = json.loads((material.folder / "documents.json").read_text("utf-8"))
        self.prepare: dict[str, float] = {}
        """milliseconds before a caller's first search, to determine the visible documents"""
        self.stages: dict[str, dict[str, float]] = {}
        """median milliseconds of each stage of the timed searches"""

    def ask(self, what: str, filters: Filters, mode: Mode, truth: str | None) -> None:
        session = self._opened.session()
        started = time.perf_counter()
        searcher = Searcher(session, filters, SearchSettings(), self._memory)
        self.prepare[what] = round(1000 * (time.perf_counter() - started), 2)

        seconds: list[dict[str, float]] = []

        def search(query: Any) -> list[Hit]:
            found = searcher.search(self._texts[query.tobytes()], {self._embedder: query}, mode, NEAREST)
            seconds.append(searcher.explanation.seconds)
            return found

        if truth is None:
            self._time(what, search)
        else:
            self._asked.time(what, self._setting(searcher, search), truth, lambda query: self._numbers(search(query)))
        timed = seconds[-self._asked.facts["queries"] :]
        self.stages[what] = {stage: round(1000 * median(each[stage] for each in timed), 2) for stage in timed[0]}
        session.close()

    def exact(self, what: str) -> None:
        """Run an exact search in SQL, as an analyst would write it."""
        session = self._opened.session()
        size = self._asked.queries.shape[1]
        sql = f"""SELECT document_id, chunk_index FROM chunks
            ORDER BY array_cosine_similarity(vector, $1::FLOAT[{size}]) DESC LIMIT {NEAREST}"""
        self._asked.time(what, "SQL on the view", "all", lambda query: self._places(_rows(session, sql, query)))
        session.close()

    def _setting(self, searcher: Searcher, search: Callable[[Any], Sequence[Hit]]) -> str:
        search(self._asked.queries[0])
        found = searcher.explanation
        return f"{found.vectors}, {found.vector_candidates} compared"

    def _time(self, what: str, search: Callable[[Any], Sequence[Hit]]) -> None:
        warm_up = self._asked.facts["warm_up"]
        for query in self._asked.queries[:warm_up]:
            search(query)
        seconds, processor = [], []
        for query in self._asked.queries[warm_up:]:
            started, begun = time.perf_counter(), time.process_time()
            search(query)
            seconds.append(time.perf_counter() - started)
            processor.append(time.process_time() - begun)
        self._asked.rows.append(result_row(what, "", seconds, processor, None))

    def _numbers(self, hits: Sequence[Hit]) -> list[int]:
        return self._places([(hit.row["document_id"], hit.row["chunk_index"]) for hit in hits])

    def _places(self, found: Sequence[tuple[str, int]]) -> list[int]:
        return [self._firsts[document] + index for document, index in found]


def _rows(session: Connection, sql: str, query: Any) -> list[tuple[str, int]]:
    return [(str(document), int(index)) for document, index in session.execute(sql, [query.tolist()]).fetchall()]


if __name__ == "__main__":
    main()
