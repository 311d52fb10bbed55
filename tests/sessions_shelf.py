"""A folder of chat sessions with a corpus beside it, processed by the real pipeline without Prefect."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parquetry.flows.pipelines.sessions import AdHoc, SessionsRequest, plan_sessions_only, run_sessions
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader
from parquetry.sessions.report import SessionsReport
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.tasks.engine.base import DirectEngine
from parquetry.tasks.sessions.plan import SessionPlan


class Shelf:
    """A source of sessions, its corpus, and the language model that reads it."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.folder = root / "chats"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.url = url
        self.source: dict[str, Any] = {"visibility": "public", "user_id": "ada", "org_id": "acme"}
        self.sections: dict[str, Any] = {}
        self._clock = 1_900_000_000

    @property
    def settings(self) -> Settings:
        sections = {
            "corpus": {"root": str(self.root / "corpus")},
            "source": [{"name": "chats", "uri": str(self.folder), "content": "sessions", **self.source}],
            "refresh": {"attempts": 1},
            **self.sections,
        }
        sections["llm"] = {"model": "m", "base_url": self.url, "attempts": 1, **self.sections.get("llm", {})}
        return parse_settings(sections, "test")

    def write(self, path: str, said: Sequence[str], *, first: int = 1_767_225_600) -> Path:
        """Write a session in which a user says these things, each answered, an hour apart."""
        messages: list[dict[str, Any]] = []
        for number, text in enumerate(said):
            at = first + 3600 * number
            messages.append({"role": "user", "content": text, "created_at": at})
            messages.append({"role": "assistant", "content": "I see.", "created_at": at + 60})
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"messages": messages}), "utf-8")
        self._clock += 60
        os.utime(file, (self._clock, self._clock))
        return file

    def learn(self, **options: Any) -> SessionsReport:
        review = options.pop("review", None)
        return run_sessions(self.request(**options), DirectEngine(), Observer(), review)

    def plan(self, **options: Any) -> SessionPlan:
        return plan_sessions_only(self.request(**options))

    def request(self, **options: Any) -> SessionsRequest:
        return SessionsRequest(self.settings, **{"owner": AdHoc(), **options})

    @property
    def lake(self) -> Lake:
        return Lake(self.settings.corpus.root)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return rows of a query over the views of the corpus."""
        with connect_snapshot(self.lake.snapshot()) as connection:
            return connection.execute(statement).fetchall()

    def live(self) -> list[str]:
        """Return texts of the live entries, sorted."""
        return [text for (text,) in self.rows("SELECT text FROM entries ORDER BY text")]

    def decisions(self) -> list[tuple[Any, ...]]:
        """Return kind and text of every decision in force, sorted."""
        return self.rows("SELECT kind, text FROM decisions ORDER BY kind, text")

    def reader(self) -> Reader:
        return Reader(self.settings)
