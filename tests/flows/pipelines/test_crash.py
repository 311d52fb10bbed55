"""A run killed at any moment leaves the last version readable, and its paid work is reused."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parquetry.storage.database import open_duckdb, sql_list
from tests.flows.pipelines.test_properties import state
from tests.series import part_of
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

RUNNER = Path(__file__).parent / "crash_runner.py"
BY_EVENT, BY_TIME, PARTS = 20, 12, 4
"""kills at file operations and at random times, in so many parts"""
SECTIONS = {
    "extraction": {"workers": 1},
    "chunking": {"size": 120, "overlap": 0},
    "refresh": {"batch_documents": 2, "workers": 2},
}


@pytest.fixture(scope="module")
def runner() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.stdin.close()
    process.stdout.close()
    assert process.wait(120) == 0


def ask(runner: subprocess.Popen[str], root: Path, **moment: Any) -> dict[str, Any]:
    runner.stdin.write(json.dumps({"root": str(root), "sections": SECTIONS, **moment}) + "\n")
    runner.stdin.flush()
    return json.loads(runner.stdout.readline())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Workshop:
    """A published corpus with a source in which files were edited, added, moved and removed afterwards."""
    workshop = Workshop(tmp_path_factory.mktemp("crash"))
    workshop.sections |= SECTIONS
    for number in range(10):
        workshop.write(
            f"{number}.md", "\n\n".join(f"Rule {number}.{rule}: count the boards twice." for rule in range(6))
        )
    workshop.refresh()
    for number in range(4):
        workshop.write(
            f"{number}.md", "\n\n".join(f"Rule {number}.{rule}: count them {rule} times." for rule in range(9))
        )
    for number in range(20, 26):
        workshop.write(f"{number}.md", "\n\n".join(f"Order {number}.{rule}: signed by two." for rule in range(5)))
    (workshop.folder / "8.md").rename(workshop.folder / "moved.md")
    (workshop.folder / "9.md").unlink()
    return workshop


def copy_of(workshop: Workshop, root: Path) -> Workshop:
    shutil.copytree(workshop.root, root, copy_function=shutil.copy2, dirs_exist_ok=True)
    copy = Workshop(root)
    copy.sections |= SECTIONS
    return copy


def stored_hashes(workshop: Workshop) -> set[str]:
    """Return the text hashes in all complete chunk shards on disk, registered or not."""
    files = sorted(str(path) for path in (workshop.root / "corpus" / "chunks").glob("*.parquet"))
    found = open_duckdb().execute(f"SELECT DISTINCT text_hash FROM read_parquet({sql_list(files)})").fetchall()
    return {key for (key,) in found}


def visible_hashes(workshop: Workshop) -> set[str]:
    return {key for (key,) in workshop.reader().connection.execute("SELECT DISTINCT text_hash FROM chunks").fetchall()}


@dataclass(frozen=True)
class Undisturbed:
    """Outcome of a run that is not killed."""

    before: dict[str, Any]
    after: dict[str, Any]
    needed: set[str]
    """text hashes of all visible chunks afterwards"""
    events: int
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(prepared, runner, tmp_path_factory) -> Undisturbed:
    # The first child imports what those after it find imported.
    assert not ask(runner, copy_of(prepared, tmp_path_factory.mktemp("first")).root)["killed"]
    whole = copy_of(prepared, tmp_path_factory.mktemp("whole"))
    before = comparable(state(whole))
    complete = ask(runner, whole.root)
    assert not complete["killed"], complete
    after = comparable(state(whole))
    return Undisturbed(before, after, visible_hashes(whole), complete["events"], complete["seconds"])


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_runs_leave_the_last_version_and_lose_no_vector(prepared, undisturbed, runner, tmp_path, part):
    """Kill the run at file operations spread over it, and at random times."""
    dice = random.Random(20261122 + part)
    operations = part_of(range(1, undisturbed.events + 1), BY_EVENT)[part::PARTS]
    moments: list[dict[str, Any]] = [{"event": each} for each in operations]
    moments += [{"delay": dice.uniform(0, undisturbed.seconds)} for _ in range(BY_TIME // PARTS)]
    after, killed = undisturbed.after, 0
    for number, moment in enumerate(moments):
        workshop = copy_of(prepared, tmp_path / str(number))
        answer = ask(runner, workshop.root, **moment)
        killed += answer["killed"]
        published = workshop.lake.snapshot().version
        assert published in (1, 2), moment
        seen = state(workshop)
        assert comparable(seen) == (after if published == 2 else undisturbed.before), moment

        stored = stored_hashes(workshop)
        report = workshop.refresh(allow_removals=True)
        assert comparable(state(workshop)) == after, moment
        assert report.work.chunks_embedded == (0 if published == 2 else len(undisturbed.needed - stored)), moment
        assert workshop.refresh().version == report.version, moment
        shutil.rmtree(workshop.root)
    # A delay close to the whole duration may come too late; kills at file operations always happen.
    assert killed >= len(operations)


def comparable(seen: dict[str, Any]) -> dict[str, Any]:
    """Return a state without the path and inodes of its copy."""
    chunks = [(chunk[0], *chunk[2:]) for chunk in seen["chunks"]]
    documents = {path: (*told, etag.split("-")[:2]) for path, (*told, etag) in seen["documents"].items()}
    return {**seen, "chunks": chunks, "documents": documents}
