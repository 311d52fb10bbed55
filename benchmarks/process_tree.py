"""Measurement of a command and its child processes: wall time, processor time, memory."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.1
"""seconds between two samples of the processes; shorter-lived processes may be missed"""
_MEMORY_EVERY = 2
"""samples per measurement of memory: the kernel walks all pages of a process, which slows it down"""
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one run of a command."""

    wall_seconds: float
    """from start to exit of the process, including the interpreter's start"""
    processor_seconds: float
    """user and system time of all processes, as last sampled: up to one sample interval of each process is missing"""
    own_processor_seconds: float
    """the part of these that the command itself took, without its child processes"""
    peak_pss_mb: float
    """largest simultaneous sum over all processes, in 10^6 bytes; memory shared by n processes counts 1/n in each"""
    peak_rss_mb: float
    """the same, with shared pages counted in full for each process"""
    load_before: float
    """load average of the last minute at the start"""
    exit_code: int
    output: str
    """stdout"""
    errors: str
    """last 2,000 characters of stderr"""


def measure(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    timeout_seconds: float = math.inf,
) -> Measured:
    """Run a command to its end and measure its whole process tree.

    Args:
        command: program and arguments.
        folder: working directory.
        environment: variables to add to the current ones.
        timeout_seconds: time limit, after which the command is killed.

    Returns:
        Measurements, for success and failure alike.
    """
    load = os.getloadavg()[0]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(environment or {})}, stdout=output, stderr=errors
        )
        tree = ProcessTree(process.pid)
        while process.poll() is None:
            tree.look()
            if time.perf_counter() - started > timeout_seconds:
                process.kill()
            try:
                process.wait(SAMPLE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        wall = time.perf_counter() - started
        output.seek(0)
        errors.seek(0)
        return Measured(
            wall_seconds=round(wall, 3),
            processor_seconds=round(tree.processor_seconds, 2),
            own_processor_seconds=round(tree.own_processor_seconds, 2),
            peak_pss_mb=tree.peak_pss_mb,
            peak_rss_mb=tree.peak_rss_mb,
            load_before=round(load, 2),
            exit_code=process.returncode,
            output=output.read(),
            errors=errors.read()[-2000:],
        )


def run_alone(command: Sequence[str]) -> tuple[str, resource.struct_rusage]:
    """Run a command; return its stdout, and what its process used, without others that it started.

    A command begins with the largest memory of the process that runs it: make what is large elsewhere.

    Args:
        command: program and arguments.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        # Only this call tells of one child.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        output.seek(0)
        return output.read(), usage


class ProcessTree:
    """Resources used so far by a process and its descendants, as far as they were looked at."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._processor: dict[int, float] = {}
        self._looks = 0
        self._peak_pss = 0
        self._peak_rss = 0

    @property
    def peak_pss_mb(self) -> float:
        return round(self._peak_pss / _MB, 1)

    @property
    def peak_rss_mb(self) -> float:
        return round(self._peak_rss / _MB, 1)

    @property
    def processor_seconds(self) -> float:
        return sum(self._processor.values())

    @property
    def own_processor_seconds(self) -> float:
        return self._processor.get(self._root.pid, 0.0)

    def is_running(self) -> bool:
        return self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE

    def look(self) -> None:
        """Sample all processes; those that live shorter than the time between two looks may be missed."""
        pss = rss = 0
        with_memory = self._looks % _MEMORY_EVERY == 0
        self._looks += 1
        try:
            processes = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in processes:
            try:
                times = process.cpu_times()
                self._processor[process.pid] = times.user + times.system
                memory = process.memory_full_info() if with_memory else None
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            if memory is None:
                continue
            pss += getattr(memory, "pss", memory.rss)
            rss += memory.rss
        self._peak_pss = max(self._peak_pss, pss)
        self._peak_rss = max(self._peak_rss, rss)
