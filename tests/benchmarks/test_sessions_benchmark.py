"""The benchmark of chat sessions takes the requested sessions, and measures a run that learns."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from benchmarks.sessions import FILES, Trial, scripted_model, take

pytestmark = pytest.mark.slow

MONDAY = "We reset the staging database every Monday."


def corpora(folder: Path) -> Path:
    """Write two files in the forms of the real ones: five conversations, and two days of one user."""
    chats, memories = (folder / name for name in FILES)
    for file in (chats, memories):
        file.parent.mkdir(parents=True)
    with chats.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["user 1 personas", "user 2 personas", "Best Generated Conversation"])
        for number in range(5):
            rows.writerow(["I keep bees.", "I paint.", f"User 1: Hello {number}.\nUser 2: I paint boats."])
    days = {f"2031-05-0{day}": [{"query": f"{MONDAY} Day {day}.", "response": "Noted."}] for day in (1, 2)}
    memories.write_text(json.dumps({"Ada": {"name": "Ada", "history": days}}), "utf-8")
    return folder


def test_as_many_sessions_are_taken_as_were_asked_for(tmp_path: Path) -> None:
    taken = take(corpora(tmp_path / "corpora"), tmp_path / "chats", 5)
    assert taken == {Path(FILES[0]).name: 3, Path(FILES[1]).name: 2}


def test_run_is_measured_with_what_it_learned(tmp_path: Path) -> None:
    take(corpora(tmp_path / "corpora"), tmp_path / "chats", 3)
    with scripted_model() as model:
        trial = Trial(tmp_path / "trial", model.url)
        trial.prepare(tmp_path / "chats")
        measured, report = trial.run()
        assert model.asked() == report["calls"] == trial.answers() > 0
    assert report["sessions"]["new"] == 3
    assert measured.exit_code == 0
    assert trial.live()
    assert trial.untraced() == 0
