"""Tries a check on inputs made at random for a while; `make fuzz` does it for longer.

Inputs are the same in every run unless `PARQUETRY_FUZZ_SEED` is another number, so that a test that fails, fails again.
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
"""for all targets together"""
MOST = int(os.environ.get("PARQUETRY_FUZZ_MOST", "30000"))
"""inputs for all targets together: a fast machine tries no others than those that were tried before"""
SEED = int(os.environ.get("PARQUETRY_FUZZ_SEED", "0"))
TIMEOUT = SECONDS + 600
"""of a test: what was found is made small before it is shown"""
_KEPT = Path(__file__).parents[2] / ".fuzz"
_AT_ONCE = 100
_STEPS = 1_000_000
"""from a seed to that of the next run by hand, so that no two runs try the same"""


def fuzz(inputs: st.SearchStrategy[Input], check: Callable[[Input], Hashable], *, share: float) -> Counter[Hashable]:
    """Check one input after the other until the time is up, or the number is reached.

    Args:
        inputs: what is tried.
        check: raises for what must not be; what it returns is counted.
        share: of the time and the number for all targets.

    Returns:
        How often each came out.
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
        # Of the length of what it would print.
        warnings.simplefilter("ignore", hypothesis.errors.HypothesisWarning)
        while time.monotonic() < end and sum(seen.values()) < share * MOST:
            # Each time anew, since a test of Hypothesis remembers what it has tried.
            hypothesis.seed(number)(profile(hypothesis.given(inputs)(lambda value: once(value))))()
            number += 1
    print(f"{sum(seen.values())} inputs:", ", ".join(f"{what} {count}" for what, count in seen.most_common()))
    return seen


def keep(content: bytes, name: str) -> Path:
    """Keep an input that is refused by a check in `.fuzz`, for whoever looks into it."""
    _KEPT.mkdir(exist_ok=True)
    file = _KEPT / f"{hashlib.sha256(content).hexdigest()[:12]}-{name[-60:]}"
    file.write_bytes(content)
    return file
