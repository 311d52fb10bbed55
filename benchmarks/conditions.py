"""Measurement conditions, and storage of results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


def conditions(packages: Sequence[str]) -> dict[str, Any]:
    """Return the machine, versions, date and commit.

    Args:
        packages: packages to report the versions of.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "changed_since_commit": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "packages": {name: _version(name) for name in packages},
    }


def wait_until_idle(max_load: float | None, patience_seconds: float = 1800) -> bool:
    """Wait until the load average of the last minute is below a bound.

    Args:
        max_load: the bound; None to not wait.
        patience_seconds: maximum wait.

    Returns:
        True if the load average is below the bound.
    """
    deadline = time.monotonic() + patience_seconds
    while max_load is not None and os.getloadavg()[0] > max_load:
        if time.monotonic() > deadline:
            return False
        time.sleep(2)
    return True


def write_result(name: str, result: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write a result as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return file


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
