"""The course of an analysis: its parts, and a look that ends it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from parquetry.analysis.similar_vectors import Check, no_check

Stage = Literal["facts", "comparing", "drawing"]
FACTS: Stage = "facts"
COMPARING: Stage = "comparing"
DRAWING: Stage = "drawing"
Look = Callable[[Stage], None]
"""called several times a second with the part that is in work; raises to end the analysis"""


def no_look(stage: Stage) -> None:
    """Go on."""


def check_of(look: Look, stage: Stage) -> Check:
    """Return a look at one part, for code that knows of no others."""
    return no_check if look is no_look else partial(look, stage)
