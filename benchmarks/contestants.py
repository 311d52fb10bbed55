"""Who takes part in the refresh benchmark, and how each is run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process_tree import Measured, measure

_PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True)
class Run:
    """One refresh by one contestant."""

    measured: Measured
    work_seconds: float
    """what the program itself counts, without its start"""
    embedded: int
    """chunks that a vector was computed for"""
    stages: dict[str, float]
    """seconds by stage, summed over threads, waiting included; empty where the program does not tell"""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program that refreshes an index of a folder of PDFs."""

    name: str
    command: Callable[[Path], list[str]]
    """from the folder; it runs in a folder of its own, where it keeps everything"""
    read: Callable[[dict[str, Any]], tuple[float, int, dict[str, float]]]
    """from the last line of output: seconds of work, chunks embedded, stages"""
    environment: dict[str, str]

    def refresh(self, folder: Path, state: Path) -> Run:
        """Refresh once.

        Raises:
            RuntimeError: it failed.
        """
        measured = measure(self.command(folder), state, self.environment)
        if measured.exit_code != 0:
            raise RuntimeError(f"{self.name} ended with {measured.exit_code}: {measured.errors}")
        return Run(measured, *self.read(json.loads(measured.output.strip().splitlines()[-1])))


def parquetry(*, direct: bool = True) -> Contestant:
    """Ours, from the environment that this runs in."""
    program = [
        sys.executable,
        "-c",
        "from parquetry.serving.cli.main import main; main()",
        "refresh",
        *(["--direct"] if direct else []),
    ]
    return Contestant(
        "parquetry" if direct else "parquetry on Prefect",
        lambda folder: [*program, str(folder), "--corpus", "corpus", "--json"],
        lambda report: (report["seconds"], report["chunks"]["embedded"], report.get("seconds_by_stage", {})),
        {"PYTHONPATH": str(_PEERS.parent.parent)},
    )


def cocoindex(python: Path) -> Contestant:
    """CocoIndex with LanceDB, in its own environment."""
    environment = {"COCOINDEX_DB": "cocoindex.db", "COCOINDEX_DISABLE_USAGE_TRACKING": "1", "RUST_LOG": "error"}
    return _peer("cocoindex", python, environment)


def llamaindex(python: Path) -> Contestant:
    """LlamaIndex with LanceDB, in its own environment."""
    return _peer("llamaindex", python, {})


def _peer(name: str, python: Path, environment: dict[str, str]) -> Contestant:
    driver = _PEERS / f"{name}_refresh.py"
    return Contestant(
        name,
        lambda folder: [str(python.absolute()), str(driver), str(folder)],
        lambda report: (report["seconds"], report["embedded"], {}),
        environment,
    )
