"""Run a check on random inputs for a while; `make fuzz` runs longer.

Inputs are the same in every run unless `PARQUETRY_FUZZ_SEED` is set to another number, so failures are reproducible.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

Input = TypeVar("Input")
SECONDS = float(os.environ.get("PARQUETRY_FUZZ_SECONDS", "600"))
"""seconds for all targets together"""
MOST = int(os.environ.get("PARQUETRY_FUZZ_MOST", "10000"))
"""maximum number of inputs for all targets together, so that a fast machine tries no additional inputs"""
SEED = int(os.environ.get("PARQUETRY_FUZZ_SEED", "0"))
TIMEOUT = SECONDS + 600
"""seconds per test, including the time to shrink a failing input"""
_KEPT = Path(__file__).parents[2] / ".fuzz"
_AT_ONCE = 100
_STEPS = 1_000_000
"""distance between the seeds of consecutive manual runs, so that no two runs try the same inputs"""


def fuzz(inputs: st.SearchStrategy[Input], check: Callable[[Input], Hashable], *, share: float) -> Counter[Hashable]:
    """Check one input after another until the time is up or the number is reached.

    Args:
        inputs: inputs to try.
        check: raises on a fault; its return values are counted.
        share: share of the time and the number for all targets.

    Returns:
        Number of inputs per outcome.
    """
    seen: Counter[Hashable] = Counter()
    profile = hypothesis.settings(
        max_examples=_AT_ONCE,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )

    def once(value: Input) -> None:
        seen[check(value)] += 1

    end = time.monotonic() + share * SECONDS
    number = SEED * _STEPS
    with warnings.catch_warnings():
        # Hypothesis warns about the length of its output.
        warnings.simplefilter("ignore", hypothesis.errors.HypothesisWarning)
        while time.monotonic() < end and sum(seen.values()) < share * MOST:
            # Create a new test each time, since a Hypothesis test remembers the inputs it has tried.
            hypothesis.seed(number)(profile(hypothesis.given(inputs)(lambda value: once(value))))()
            number += 1
    print(f"{sum(seen.values())} inputs:", ", ".join(f"{what} {count}" for what, count in seen.most_common()))
    return seen


def keep(content: bytes, name: str) -> Path:
    """Save an input that fails a check to `.fuzz` for inspection."""
    _KEPT.mkdir(exist_ok=True)
    file = _KEPT / f"{hashlib.sha256(content).hexdigest()[:12]}-{name[-60:]}"
    file.write_bytes(content)
    return file
