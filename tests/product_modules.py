"""The modules of the product: their files and their import names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.documentation import ROOT

ROOMS = ("parquetry", "storage", "tasks", "flows", "serving", "deployments")
"""top-level folders; `parquetry/` links to the others"""


def product_modules() -> Iterator[tuple[str, Path]]:
    """Return the dotted name and file of every module."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts if room == "parquetry" else ("parquetry", *parts)).removesuffix(".__init__"), file
