"""Contestants of the refresh benchmark, and their commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process_tree import Measured, measure

_AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}
"""an installed program is compiled once, not at each start"""
_PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True)
class Run:
    """Measurements of one refresh by one contestant."""

    measured: Measured
    work_seconds: float
    """seconds reported by the program itself, without its start"""
    embedded: int
    """number of chunks with a newly computed vector"""
    stages: dict[str, float]
    """seconds by stage, summed over threads, including waiting; empty if the program reports none"""


@dataclass(frozen=True, slots=True)
class Contestant:
    """Program that refreshes an index of a folder of PDFs."""

    name: str
    command: Callable[[Path], list[str]]
    """builds the command from the folder; it runs in a separate folder, where it keeps all its state"""
    read: Callable[[dict[str, Any]], tuple[float, int, dict[str, float]]]
    """parses the last line of output: seconds of work, chunks embedded, stages"""
    environment: dict[str, str]

    def refresh(self, folder: Path, state: Path) -> Run:
        """Run one refresh.

        Raises:
            RuntimeError: the refresh failed.
        """
        measured = measure(self.command(folder), state, {**_AS_INSTALLED, **self.environment})
        if measured.exit_code != 0:
            raise RuntimeError(f"{self.name} ended with {measured.exit_code}: {measured.errors}")
        return Run(measured, *self.read(json.loads(measured.output.strip().splitlines()[-1])))


def parquetry(*, direct: bool = True, checkout: Path | None = None) -> Contestant:
    """Return Parquetry, run from the current environment.

    Args:
        direct: False to run it on Prefect.
        checkout: folder of another version, to compare with this one.
    """
    program = [
        sys.executable,
        "-c",
        "from parquetry.serving.cli.main import main; main()",
        "refresh",
        *(["--direct"] if direct else []),
    ]
    return Contestant(
        "before" if checkout else "parquetry" if direct else "parquetry on Prefect",
        lambda folder: [*program, str(folder), "--corpus", "corpus", "--json"],
        lambda report: (report["seconds"], report["chunks"]["embedded"], report.get("seconds_by_stage", {})),
        {"PYTHONPATH": str(checkout or _PEERS.parent.parent)},
    )


def cocoindex(python: Path) -> Contestant:
    """Return CocoIndex with LanceDB, run in a separate environment."""
    environment = {"COCOINDEX_DB": "cocoindex.db", "COCOINDEX_DISABLE_USAGE_TRACKING": "1", "RUST_LOG": "error"}
    return _peer("cocoindex", python, environment)


def llamaindex(python: Path) -> Contestant:
    """Return LlamaIndex with LanceDB, run in a separate environment."""
    return _peer("llamaindex", python, {})


def _peer(name: str, python: Path, environment: dict[str, str]) -> Contestant:
    driver = _PEERS / f"{name}_refresh.py"
    return Contestant(
        name,
        lambda folder: [str(python.absolute()), str(driver), str(folder)],
        lambda report: (report["seconds"], report["embedded"], {}),
        environment,
    )
