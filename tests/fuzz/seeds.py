"""Seed files for random changes: the documents of the handbook, those of the hostile classes, and custom files."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.extract import hostile_data, hostile_documents, hostile_markup, hostile_office, hostile_pdf, hostile_sheets
from tests.fuzz.mutation import File
from tests.sessions.transcripts.transcript_samples import SAMPLES, TURNS

FILES = os.environ.get("PARQUETRY_FUZZ_FILES")
"""folder with custom seed files"""
_EXAMPLES = Path(__file__).parents[2] / "examples"
_MOST_BYTES = 150_000
_MOST_FILES = 400
_HOSTILE_BYTES = 1500


def documents() -> list[File]:
    """Return documents of every supported format."""
    classes = (hostile_data, hostile_documents, hostile_markup, hostile_office, hostile_pdf, hostile_sheets)
    hostile = [File(*make(_HOSTILE_BYTES)) for each in classes for make in each.CLASSES.values()]
    plain = [file for file in _files(_EXAMPLES / "handbook") for _ in range(10)]
    return [*plain, *(file for file in hostile if len(file.content) < _MOST_BYTES), *own()]


def own() -> list[File]:
    """Return at most 400 files of the folder in PARQUETRY_FUZZ_FILES, about equally many of each extension."""
    if not FILES:
        return []
    endings: dict[str, list[File]] = {}
    for file in _files(Path(FILES)):
        endings.setdefault(Path(file.name).suffix.lower(), []).append(file)
    most = max(3, _MOST_FILES // max(1, len(endings)))
    choice = random.Random(0)
    return [file for files in endings.values() for file in choice.sample(files, min(most, len(files)))]


def transcripts() -> list[File]:
    """Return chat sessions in every supported format."""
    return [File(sample.write(TURNS), "chat.jsonl") for sample in SAMPLES]


def settings() -> list[File]:
    """Return settings files."""
    return [File(file.read_bytes(), file.name) for file in sorted(_EXAMPLES.glob("*.toml"))]


def _files(folder: Path) -> list[File]:
    found = sorted(file for file in folder.rglob("*") if file.is_file() and 0 < file.stat().st_size <= _MOST_BYTES)
    return [File(file.read_bytes(), file.name) for file in found if "__pycache__" not in file.parts]
