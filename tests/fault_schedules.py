"""Refreshes of an S3 source into an S3 corpus while the proxy in front of the server injects faults by a schedule."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parquetry.errors import ParquetryError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.fault_proxy import FaultProxy, Schedule

SCHEDULES_PER_CORPUS = 6
"""schedules after which a new corpus is begun, so that its creation meets faults as well"""


def _rules(name: str, count: int) -> str:
    return "\n\n".join(f"Rule {name}.{number}: count the boards {number + 2} times." for number in range(count))


CONTENTS = (
    {f"{number}.md": _rules(str(number), 3) for number in range(5)},
    {
        **{f"{number}.md": _rules(str(number), 3) for number in range(2)},
        # Changed; renamed to a name that needs quoting; 4.md is gone.
        "2.md": _rules("two", 4),
        "moved/3 ä+%20.md": _rules("3", 3),
        "new.md": _rules("new", 3),
    },
)
"""successive contents of the source"""


@dataclass
class Outcome:
    """Outcome of many schedules."""

    schedules: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    """runs under faults, by outcome"""
    retries: int = 0
    wrong: list[str] = field(default_factory=list)
    """violations: a lost document, half a publish, ..."""


class Trial:
    """One source, and one corpus after another, on a server; both are reached through the proxy.

    Args:
        client: boto3 client that bypasses the proxy.
        bucket: bucket of both.
        proxy: proxy that `AWS_ENDPOINT_URL` in the environment points to.
        folder: folder of the search indexes.
    """

    def __init__(self, client: Any, bucket: str, proxy: FaultProxy, folder: Path) -> None:
        self._client, self._bucket, self._proxy, self._folder = client, bucket, proxy, folder
        self._expected: dict[int, Any] = {}
        self._number = 0
        self._written: dict[str, str] = {}
        self._before: Any = None
        """latest state that readers of the present corpus saw"""
        self.outcome = Outcome()

    def run(self, seed: int) -> None:
        """Run one schedule: change the source and refresh under faults; if that was partial, refresh without faults."""
        number, turn = divmod(self._number, SCHEDULES_PER_CORPUS)
        self._number += 1
        which = turn % 2
        settings = self._settings(f"corpus-{number}")
        self._write(CONTENTS[which])
        before = self._before if turn else None
        told = self._under_faults(settings, seed)
        after = _state(settings) if Lake.exists(settings.corpus.root) else None
        where = f"seed {seed}"
        self._check_between(where, before, after, which, told)
        if after is None or told != "published":
            run_refresh(Request(settings, allow_removals=True), DirectEngine(), Observer())
            after = _state(settings)
        self._before = after
        self._expect(after["content"] == self._rebuilt(which), f"{where}: what was published does not equal a rebuild")
        publishes = self._publishes(settings)
        self._expect(len(publishes) == len(set(publishes)), f"{where}: a run was published twice")
        self.outcome.schedules += 1

    def _under_faults(self, settings: Settings, seed: int) -> str:
        with self._proxy.failing(Schedule(seed)) as schedule:
            try:
                report = run_refresh(Request(settings, allow_removals=True), DirectEngine(), Observer())
            except ParquetryError as error:
                told = type(error).__name__
            else:
                told = "published" if report.version != report.version_before else "nothing to publish"
                told += ", documents failed" if report.failures else ""
                self.outcome.retries += report.retries
        self.outcome.runs[told] += 1
        self.outcome.faults.update(schedule.thrown)
        return told

    def _check_between(self, where: str, before: Any, after: Any, which: int, told: str) -> None:
        """Check the state that readers see between the refreshes: the old one, the new one, or part of the new one."""
        if after is None:
            self._expect(before is None and "published" not in told, f"{where}: the corpus is gone")
            return
        self._expect(not after["half"], f"{where}: half a publish: {after['half']}")
        self._expect(not after["twice"], f"{where}: documents are there twice: {after['twice']}")
        if before is not None:
            lost = before["paths"] - after["paths"] - (set(CONTENTS[1 - which]) - set(CONTENTS[which]))
            self._expect(not lost, f"{where}: documents are lost: {lost}")
        if "published" not in told and before is not None:
            self._expect(after == before, f"{where}: a run that says it published nothing ({told}) changed the corpus")

    def _expect(self, truth: bool, otherwise: str) -> None:
        if not truth:
            self.outcome.wrong.append(otherwise)

    def _rebuilt(self, which: int) -> Any:
        """Return the state of a corpus built in one go from the present content of the source."""
        if which not in self._expected:
            settings = self._settings(f"rebuilt-{which}")
            run_refresh(Request(settings), DirectEngine(), Observer())
            self._expected[which] = _state(settings)["content"]
        return self._expected[which]

    def _publishes(self, settings: Settings) -> list[str]:
        """Return the run ids of the commits to `documents`."""
        prefix = settings.corpus.root.removeprefix(f"s3://{self._bucket}/") + "/documents/_delta_log/"
        found = []
        for each in self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix)["Contents"]:
            if each["Key"].endswith(".json"):
                commit = self._client.get_object(Bucket=self._bucket, Key=each["Key"])["Body"].read()
                entries = map(json.loads, commit.splitlines())
                found += [entry["commitInfo"]["run_id"] for entry in entries if "run_id" in entry.get("commitInfo", ())]
        return found

    def _write(self, contents: dict[str, str]) -> None:
        listed = self._client.list_objects_v2(Bucket=self._bucket, Prefix="docs/").get("Contents", ())
        for key in {each["Key"] for each in listed} - {f"docs/{path}" for path in contents}:
            self._client.delete_object(Bucket=self._bucket, Key=key)
        for path, text in contents.items() - self._written.items():
            self._client.put_object(Bucket=self._bucket, Key=f"docs/{path}", Body=text.encode())
        self._written = contents

    def _settings(self, corpus: str) -> Settings:
        return parse_settings(
            {
                "corpus": {"root": f"s3://{self._bucket}/{corpus}"},
                "source": [{"name": "docs", "uri": f"s3://{self._bucket}/docs/"}],
                "chunking": {"size": 60, "overlap": 0},
                "extraction": {"workers": 1},
                "refresh": {"batch_documents": 3},
                "search": {"index_folder": str(self._folder / corpus)},
            },
            "trial",
        )


def _state(settings: Settings) -> dict[str, Any]:
    """Return the state that readers see, without revisions, runs, times and change tokens, which differ by nature."""
    with connect_snapshot(Lake(settings.corpus.root).snapshot()) as connection:
        documents = connection.execute(
            "SELECT path, document_id, status, content_hash, chunks, revision FROM documents ORDER BY path"
        ).fetchall()
        chunks = connection.execute(
            'SELECT chunk_id, "start", "end", text, text_hash, vector::VARCHAR FROM chunks ORDER BY ALL'
        ).fetchall()
        visible = dict(connection.execute("SELECT revision, count(*) FROM chunks GROUP BY ALL").fetchall())
        texts = connection.execute("SELECT document_id, text FROM texts ORDER BY ALL").fetchall()
    paths = Counter(path for path, *_ in documents)
    return {
        "paths": set(paths),
        "twice": [path for path, count in paths.items() if count > 1],
        "half": [path for path, *_, count, revision in documents if visible.get(revision, 0) != count],
        "content": ([document[:-1] for document in documents], chunks, texts),
    }
