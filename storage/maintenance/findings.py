"""Findings of the checks of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["problem", "note"]
_NAMED = 3
"""examples named in a finding"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check that found something."""

    check: str
    """short code in kebab-case"""
    severity: Severity
    """"note" for anything but damage: leftovers of crashed runs, files that are not part of the corpus"""
    count: int
    detail: str
    """one sentence with examples"""


def finding_of(check: str, what: str, examples: Sequence[str], severity: Severity = "problem") -> Finding:
    """Return a finding with the number of its examples, of which it names a few."""
    shown = ", ".join(examples[:_NAMED]) + (", ..." if len(examples) > _NAMED else "")
    return Finding(check, severity, len(examples), f"{what} ({len(examples)}): {shown}")
