"""A folder of documents with a corpus beside it, refreshed by the real pipeline without Prefect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from parquetry.flows.pipelines.documents import Request, plan_only, run_refresh
from parquetry.model import DocumentRow
from parquetry.planning.report import RunReport
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader, SearchRequest, SearchResponse
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.tasks.documents.plan import RefreshPlan
from parquetry.tasks.engine.base import DirectEngine


class Workshop:
    """A source folder and its corpus."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "docs"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sections: dict[str, Any] = {"extraction": {"workers": 1}}
        self._clock = 1_900_000_000

    @property
    def settings(self) -> Settings:
        source = {"name": "docs", "uri": str(self.folder), **self.sections.get("source", {})}
        corpus = {"root": str(self.root / "corpus"), **self.sections.get("corpus", {})}
        others = {key: value for key, value in self.sections.items() if key not in ("source", "corpus")}
        return parse_settings({"corpus": corpus, "source": [source], **others}, "test")

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file with a modification time later than that of every earlier one."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        self.touch(path)
        return file

    def touch(self, path: str) -> None:
        self._clock += 60
        os.utime(self.folder / path, (self._clock, self._clock))

    def refresh(self, **options: Any) -> RunReport:
        return run_refresh(Request(self.settings, **options), DirectEngine(), Observer())

    def plan(self, **options: Any) -> RefreshPlan:
        return plan_only(Request(self.settings, **options))

    @property
    def lake(self) -> Lake:
        return Lake(self.settings.corpus.root)

    def rows(self, version: int | None = None) -> dict[str, DocumentRow]:
        """Return the current rows by path."""
        return {row.path: row for row in current_rows(self.lake.snapshot(version))}

    def reader(self, version: int | None = None) -> Reader:
        return Reader(self.settings, version)

    def search(self, query: str, **options: Any) -> SearchResponse:
        return self.reader().search(SearchRequest(query, **options))
